#include "penstock/service/worker/scratch_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock::service {
namespace {

namespace fs = std::filesystem;

// Of this test alone: others of its kind may run.
std::string Kind() { return absl::StrCat("penstock-scratch-", getpid(), "-"); }

TEST(ScratchFolderTest, GoesWithAllThatIsInIt) {
  std::string path;
  {
    const auto folder = ScratchFolder::Make(Kind());
    ASSERT_TRUE(folder.ok()) << folder.status();
    path = (*folder)->path();
    std::ofstream(path + "/file") << "x";
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(ScratchFolderTest, RemovesWhatKilledProcessesLeft) {
  const auto used = ScratchFolder::Make(Kind());
  ASSERT_TRUE(used.ok()) << used.status();
  const fs::path left = (*used)->path() + "-left";
  fs::create_directory(left);
  std::ofstream(left / "lock") << "";
  const auto next = ScratchFolder::Make(Kind());
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists((*used)->path()));
  EXPECT_NE((*next)->path(), (*used)->path());
}

}  // namespace
}  // namespace penstock::service
