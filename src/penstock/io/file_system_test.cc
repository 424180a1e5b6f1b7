#include "penstock/io/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

namespace penstock::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FileSystemTest : public ::testing::Test {
 protected:
  FileSystemTest() {
    std::string name = ::testing::TempDir() + "/file_system_test_XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~FileSystemTest() override { std::filesystem::remove_all(root_); }

  std::string Path(const std::string& name) const { return root_ + "/" + name; }

  void Put(const std::string& name, std::string_view contents = "") {
    std::filesystem::create_directories(
        std::filesystem::path(Path(name)).parent_path());
    ASSERT_TRUE(WriteFile(files_, Path(name), contents).ok()) << name;
  }

  // The names that match, relative to the test's folder.
  std::vector<std::string> Glob(const std::string& pattern) {
    auto paths = files_.Glob(Path(pattern));
    EXPECT_TRUE(paths.ok()) << paths.status();
    std::vector<std::string> names;
    for (const std::string& path : *paths) {
      names.push_back(path.substr(root_.size() + 1));
    }
    return names;
  }

  FileSystem& files_ = LocalFileSystem();
  std::string root_;
};

TEST_F(FileSystemTest, ReadsWhatWasWritten) {
  Put("a", "hello");
  EXPECT_EQ(*ReadFile(files_, Path("a")), "hello");
  Put("a", "hi");
  EXPECT_EQ(*ReadFile(files_, Path("a")), "hi");
}

TEST_F(FileSystemTest, ReadsAtAnyOffset) {
  Put("a", "0123456789");
  auto file = files_.Open(Path("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size(), 10);
  std::array<char, 4> dst;
  EXPECT_EQ(*(*file)->ReadAt(3, dst.data(), 4), 4U);
  EXPECT_EQ(std::string_view(dst.data(), 4), "3456");
  EXPECT_EQ(*(*file)->ReadAt(8, dst.data(), 4), 2U);
  EXPECT_EQ(*(*file)->ReadAt(10, dst.data(), 4), 0U);
}

TEST_F(FileSystemTest, TriesWithoutWaiting) {
  Put("a", "0123456789");
  auto file = files_.Open(Path("a"));
  ASSERT_TRUE(file.ok());
  std::array<char, 10> dst;
  auto n = (*file)->TryReadAt(0, dst.data(), dst.size());
  ASSERT_TRUE(n.ok()) << n.status();
  // Not every file system can tell; one that can has just been written to.
  if (n->has_value()) {
    EXPECT_EQ(**n, 10U);
  }
}

TEST_F(FileSystemTest, SaysThatAFileIsMissing) {
  const absl::Status status = files_.Open(Path("none")).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("none")));
  EXPECT_FALSE(*files_.Exists(Path("none")));
  EXPECT_FALSE(*files_.IsDirectory(Path("none")));
  Put("a");
  EXPECT_TRUE(absl::IsNotFound(files_.Open(Path("a/b")).status()));
}

TEST_F(FileSystemTest, SaysThatADirectoryIsNoFile) {
  const absl::Status status = files_.Open(root_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(), "expected a file; found a directory: " + root_);
  EXPECT_TRUE(absl::IsFailedPrecondition(files_.Create(root_).status()));
  EXPECT_TRUE(*files_.IsDirectory(root_));
}

TEST_F(FileSystemTest, RefusesAPipeInsteadOfWaitingForIt) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(files_.Open(Path("pipe")).status()));
}

TEST_F(FileSystemTest, RefusesANameWithAZeroByte) {
  Put("a", "x");
  const absl::Status status =
      files_.Open(Path(std::string("a\0b", 3))).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("a\\x00"));
}

TEST_F(FileSystemTest, SaysThatAFileMayNotBeRead) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  Put("secret", "x");
  ASSERT_EQ(chmod(Path("secret").c_str(), 0), 0);
  const absl::Status status = files_.Open(Path("secret")).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("secret")));
}

TEST_F(FileSystemTest, TakesNamesThatAreNotUtf8) {
  const std::string name = "caf\xe9\xff";
  Put(name, "x");
  EXPECT_EQ(*ReadFile(files_, Path(name)), "x");
  EXPECT_THAT(Glob("caf*"), ElementsAre(name));
  EXPECT_THAT(Glob("caf??"), ElementsAre(name));
}

TEST_F(FileSystemTest, GlobsInsideOneComponent) {
  for (const char* name : {"b.txt", "a.txt", "a.csv", "d/a.txt", "d/e/a.txt",
                           ".hidden.txt", "[x]"}) {
    Put(name);
  }
  EXPECT_THAT(Glob("*.txt"), ElementsAre(".hidden.txt", "a.txt", "b.txt"));
  EXPECT_THAT(Glob("?.txt"), ElementsAre("a.txt", "b.txt"));
  EXPECT_THAT(Glob("[ac].*"), ElementsAre("a.csv", "a.txt"));
  EXPECT_THAT(Glob("[!a].txt"), ElementsAre("b.txt"));
  EXPECT_THAT(Glob("*/a.txt"), ElementsAre("d/a.txt"));
  EXPECT_THAT(Glob("d/*/*"), ElementsAre("d/e/a.txt"));
  EXPECT_THAT(Glob("d"), ElementsAre("d"));
  EXPECT_THAT(Glob("a.txt"), ElementsAre("a.txt"));
  EXPECT_THAT(Glob("\\[x\\]"), ElementsAre("[x]"));
  EXPECT_THAT(Glob("none*"), IsEmpty());
  EXPECT_THAT(Glob("none/*"), IsEmpty());
  EXPECT_THAT(Glob("a.txt/*"), IsEmpty());
  EXPECT_THAT(*files_.Glob(""), IsEmpty());
}

TEST(LocalFiles, RenamesRemovesAndLocks) {
  FileSystem& files = LocalFileSystem();
  const std::string folder = testing::TempDir() + "/";
  const std::string from = folder + "lock_test_from";
  const std::string to = folder + "lock_test_to";
  ASSERT_TRUE(WriteFile(files, from, "new").ok());
  ASSERT_TRUE(WriteFile(files, to, "old").ok());
  EXPECT_TRUE(files.Rename(from, to).ok());
  EXPECT_EQ(*ReadFile(files, to), "new");
  EXPECT_FALSE(*files.Exists(from));
  EXPECT_EQ(files.Rename(from, to).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(files.Remove(to).ok());
  EXPECT_EQ(files.Remove(to).code(), absl::StatusCode::kNotFound);

  absl::StatusOr<std::unique_ptr<FileLock>> lock = files.Lock(to);
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(files.Lock(to).status().code(), absl::StatusCode::kAlreadyExists);
  lock->reset();
  EXPECT_TRUE(files.Lock(to).ok());
  EXPECT_TRUE(files.Remove(to).ok());
}

}  // namespace
}  // namespace penstock::io
