#include "penstock/service/rpc/gate.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/service/rpc/temporary_files_testing.h"

namespace penstock::rpc {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

constexpr char kOpen[] = "/penstock.service.Dispatcher/Open";
constexpr char kBeat[] = "/penstock.service.Dispatcher/BeatWorker";

TEST(Gate, WithoutTokensEverybodyMayCallWhatIsInTheTable) {
  auto gate = Gate::Make("");
  ASSERT_TRUE(gate.ok());
  EXPECT_TRUE((*gate)->Admit("", kOpen).ok());
  EXPECT_EQ((*gate)->Admit("", "/penstock.service.Dispatcher/Other").code(),
            StatusCode::kPermissionDenied);
}

TEST(Gate, TokensAreForRoles) {
  const TemporaryFolder folder;
  auto gate = Gate::Make(
      folder.Write("tokens", "# who\nconsumer:red\nworker:blue\n\nall\n"));
  ASSERT_TRUE(gate.ok()) << gate.status();
  EXPECT_TRUE((*gate)->Admit("Bearer red", kOpen).ok());
  EXPECT_TRUE((*gate)->Admit("Bearer blue", kBeat).ok());
  EXPECT_TRUE((*gate)->Admit("Bearer all", kOpen).ok());
  EXPECT_TRUE((*gate)->Admit("Bearer all", kBeat).ok());
  const absl::Status other = (*gate)->Admit("Bearer blue", kOpen);
  EXPECT_EQ(other.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(other.message()), HasSubstr("consumer"));
  for (const char* wrong : {"", "red", "Bearer ", "Bearer re", "Bearer redd",
                            "Bearer consumer:red"}) {
    EXPECT_EQ((*gate)->Admit(wrong, kOpen).code(), StatusCode::kUnauthenticated)
        << wrong;
  }
}

TEST(Gate, ConsumersTokensMayBeATenants) {
  const TemporaryFolder folder;
  auto gate = Gate::Make(folder.Write(
      "tokens", "consumer:red\nconsumer@vision:blue\nconsumer@text:green\n"));
  ASSERT_TRUE(gate.ok()) << gate.status();
  for (const char* word : {"Bearer red", "Bearer blue", "Bearer green"}) {
    EXPECT_TRUE((*gate)->Admit(word, kOpen).ok());
    EXPECT_FALSE((*gate)->Admit(word, kBeat).ok());
  }
  EXPECT_EQ((*gate)->TenantOf("Bearer red"), "");
  EXPECT_EQ((*gate)->TenantOf("Bearer blue"), "vision");
  EXPECT_EQ((*gate)->TenantOf("Bearer green"), "text");
  for (const char* wrong : {"worker@vision:red", "consumer@:red"}) {
    EXPECT_THAT(
        std::string(
            Gate::Make(folder.Write("wrong", wrong)).status().message()),
        HasSubstr("consumer@TENANT:TOKEN"));
  }
}

TEST(Gate, TokensAreReadAgainWhenTheyChange) {
  const TemporaryFolder folder;
  auto gate = Gate::Make(folder.Write("tokens", "first"));
  ASSERT_TRUE(gate.ok()) << gate.status();
  folder.Write("tokens", "another");
  EXPECT_FALSE((*gate)->Admit("Bearer first", kOpen).ok());
  EXPECT_TRUE((*gate)->Admit("Bearer another", kOpen).ok());
  // One that is wrong changes nothing.
  folder.Write("tokens", "nobody:knows");
  EXPECT_TRUE((*gate)->Admit("Bearer another", kOpen).ok());
}

TEST(Gate, SaysWhatIsWrongWithTheFile) {
  const TemporaryFolder folder;
  const auto why = [](const std::string& path) {
    return std::string(Gate::Make(path).status().message());
  };
  EXPECT_THAT(why(folder.Write("open", "word", 0644)), HasSubstr("chmod 600"));
  EXPECT_THAT(why(folder.Write("empty", "\n# none\n")), HasSubstr("no tokens"));
  EXPECT_THAT(why(folder.Write("role", "boss:word")), HasSubstr("line 1"));
  EXPECT_THAT(why(folder.Write("bare", "admin:")), HasSubstr("after admin"));
  EXPECT_THAT(why(folder / "missing"), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace penstock::rpc
