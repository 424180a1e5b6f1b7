#include "penstock/io/relative_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

namespace penstock::io {
namespace {

using testing::ElementsAre;

class RelativeFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "rel[ati]ve*";
    mkdir(directory_.c_str(), 0700);
    ASSERT_TRUE(
        WriteFile(LocalFileSystem(), directory_ + "/a.txt", "one").ok());
    files_ = MakeRelativeFileSystem(LocalFileSystem(), directory_);
  }

  std::string directory_;
  std::unique_ptr<FileSystem> files_;
};

TEST_F(RelativeFilesTest, RelativeNamesStartFromTheDirectory) {
  EXPECT_EQ(*ReadFile(*files_, "a.txt"), "one");
  EXPECT_EQ(*ReadFile(*files_, directory_ + "/a.txt"), "one");
  EXPECT_TRUE(*files_->Exists("a.txt"));
  EXPECT_FALSE(*files_->Exists("b.txt"));
}

TEST_F(RelativeFilesTest, GlobGivesNamesAsTheyWereAskedFor) {
  EXPECT_THAT(*files_->Glob("*.txt"), ElementsAre("a.txt"));
  EXPECT_THAT(*files_->Glob("./*.txt"), ElementsAre("./a.txt"));
}

TEST_F(RelativeFilesTest, ErrorsNameTheWholePath) {
  EXPECT_THAT(std::string(files_->Open("b.txt").status().message()),
              testing::HasSubstr(directory_ + "/b.txt"));
}

}  // namespace
}  // namespace penstock::io
