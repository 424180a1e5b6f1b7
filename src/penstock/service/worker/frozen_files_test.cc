#include "penstock/service/worker/frozen_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FrozenFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) / "frozen_files";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    for (const char* name : {"a.txt", "b.txt"}) Write(name, "four");
    Manifest::Listing* listing = manifest_.add_listings();
    listing->set_pattern("*.txt");
    for (const char* name : {"a.txt", "b.txt"}) {
      const io::FileStamp stamp =
          io::LocalFileSystem().Stamp((directory_ / name).string());
      Manifest::File* file = manifest_.add_files();
      file->set_name(name);
      file->set_size(static_cast<uint64_t>(stamp.size));
      file->set_changed_ns(stamp.changed_ns);
      listing->add_files(static_cast<uint32_t>(manifest_.files_size() - 1));
    }
    listing->add_files(99);  // of none
    files_ = std::make_unique<FrozenFiles>(io::LocalFileSystem(),
                                           directory_.string(), manifest_);
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name) << text;
  }

  std::filesystem::path directory_;
  Manifest manifest_;
  std::unique_ptr<FrozenFiles> files_;
};

TEST_F(FrozenFilesTest, PatternsStandForWhatTheyStoodFor) {
  Write("c.txt", "new");
  std::filesystem::remove(directory_ / "a.txt");
  EXPECT_THAT(*files_->Glob("*.txt"), ElementsAre("a.txt", "b.txt"));
  EXPECT_THAT(*files_->Glob("?.txt"), ElementsAre("b.txt", "c.txt"))
      << "another pattern";
  EXPECT_TRUE(absl::IsNotFound(files_->Open("a.txt").status()));
}

TEST_F(FrozenFilesTest, FilesThatHaveChangedAreRefused) {
  EXPECT_TRUE(files_->Open("a.txt").ok());
  Write("a.txt", "longer");
  const absl::Status longer = files_->Open("a.txt").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(longer));
  EXPECT_THAT(longer.message(), HasSubstr("'a.txt' had 4 bytes"));
  EXPECT_THAT(longer.message(), HasSubstr("now has 6 bytes"));
  const timespec times[2] = {{1, 0}, {1, 0}};
  utimensat(AT_FDCWD, (directory_ / "b.txt").c_str(), times, 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(files_->Open("b.txt").status()));
  Write("c.txt", "new");
  EXPECT_TRUE(files_->Open("c.txt").ok()) << "it is not the manifest's";
}

TEST_F(FrozenFilesTest, ForgetsWhenItIsToldTo) {
  Write("a.txt", "longer");
  files_->Forget();
  EXPECT_TRUE(files_->Open("a.txt").ok());
}

}  // namespace
}  // namespace penstock::service
