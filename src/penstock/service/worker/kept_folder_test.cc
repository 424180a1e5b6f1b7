#include "penstock/service/worker/kept_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"

namespace penstock::service {
namespace {

using testing::HasSubstr;

TEST(KeptFolderTest, IsWhereTheUserHasMadeASnapshot) {
  const std::string name =
      absl::StrCat(testing::TempDir(), "/kept_folder_", getpid());
  const absl::Status missing = CheckKeptFolder(name);
  EXPECT_EQ(missing.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("found none"));
  std::ofstream(name + ".shares");
  EXPECT_TRUE(CheckKeptFolder(name).ok());
  // A link leads elsewhere.
  ASSERT_EQ(symlink((name + ".shares").c_str(), (name + "2.shares").c_str()),
            0);
  EXPECT_FALSE(CheckKeptFolder(name + "2").ok());
}

}  // namespace
}  // namespace penstock::service
