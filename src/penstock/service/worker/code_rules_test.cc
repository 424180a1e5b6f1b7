#include "penstock/service/worker/code_rules.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/service/worker/scratch_folder.h"

namespace penstock::service {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kZip[] = "bytes of a zip";
constexpr char kNamed[] = "PSNAMED1{}";

PlanBundle Bundle(const std::string& function, bool has_code) {
  PlanBundle bundle;
  bundle.add_functions()->set_bytes(function);
  if (has_code) {
    bundle.mutable_code()->set_archive(kZip);
    bundle.mutable_code()->set_sha256(Sha256Of(kZip));
    bundle.mutable_code()->add_contents("my_package: 3 files");
  }
  return bundle;
}

CodeRules RulesOrDie(std::vector<std::string> accepted,
                     bool accepts_pickles = false) {
  auto rules = CodeRules::Make(std::move(accepted), accepts_pickles);
  EXPECT_TRUE(rules.ok()) << rules.status();
  return *std::move(rules);
}

std::string Hash() { return absl::StrCat("sha256:", Sha256Of(kZip)); }

TEST(CodeRulesTest, AHashIsThatOfSha256) {
  EXPECT_EQ(Sha256Of("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(CodeRulesTest, NothingIsAcceptedUnlessItIsSaid) {
  EXPECT_TRUE(CodeRules().Check(PlanBundle()).ok());
  const absl::Status status = CodeRules().Check(Bundle(kNamed, true));
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("--code-allow " + Hash()),
            HasSubstr("my_package: 3 files"), HasSubstr("accepts none")));
}

TEST(CodeRulesTest, CodeIsAcceptedByItsHash) {
  EXPECT_TRUE(RulesOrDie({"any"}).Check(Bundle(kNamed, true)).ok());
  EXPECT_TRUE(RulesOrDie({Hash()}).Check(Bundle(kNamed, true)).ok());
  const std::string other = absl::StrCat("sha256:", Sha256Of("other"));
  EXPECT_FALSE(RulesOrDie({other}).Check(Bundle(kNamed, true)).ok());
  EXPECT_TRUE(RulesOrDie({other, Hash()}).Check(Bundle(kNamed, true)).ok());
}

TEST(CodeRulesTest, CodeIsAcceptedThatLiesInAFolder) {
  const auto folder = ScratchFolder::Make("penstock-rules-");
  ASSERT_TRUE(folder.ok()) << folder.status();
  const CodeRules rules = RulesOrDie({(*folder)->path()});
  EXPECT_FALSE(rules.Check(Bundle(kNamed, true)).ok());
  std::ofstream((*folder)->path() + "/mine.zip") << kZip;
  EXPECT_TRUE(rules.Check(Bundle(kNamed, true)).ok());
}

TEST(CodeRulesTest, AHashThatWasSentIsNotBelieved) {
  PlanBundle bundle = Bundle(kNamed, true);
  bundle.mutable_code()->set_archive("something else");
  EXPECT_TRUE(absl::IsDataLoss(RulesOrDie({Hash()}).Check(bundle)));
}

TEST(CodeRulesTest, WhatIsNoNameIsAPickle) {
  for (const char* bytes : {"\x80\x05pickle", "", "PSNAMED"}) {
    const absl::Status status = RulesOrDie({"any"}).Check(Bundle(bytes, true));
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << bytes;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("pickle=True"), HasSubstr("--allow-pickle")));
  }
  EXPECT_TRUE(RulesOrDie({}, true).Check(Bundle("\x80\x05", false)).ok());
  // Nor does that accept any code.
  EXPECT_FALSE(RulesOrDie({}, true).Check(Bundle("\x80\x05", true)).ok());
}

TEST(CodeRulesTest, ANameNeedsItsCode) {
  EXPECT_FALSE(RulesOrDie({"any"}, true).Check(Bundle(kNamed, false)).ok());
}

TEST(CodeRulesTest, RefusesWhatItCannotUnderstand) {
  for (const char* each : {"all", "sha256:12", "/no/such/folder"}) {
    const auto rules = CodeRules::Make({each}, false);
    EXPECT_TRUE(absl::IsInvalidArgument(rules.status())) << each;
    EXPECT_THAT(std::string(rules.status().message()), HasSubstr(each));
  }
}

}  // namespace
}  // namespace penstock::service
