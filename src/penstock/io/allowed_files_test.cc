#include "penstock/io/allowed_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// root/in is allowed; root/out is not.
class AllowedFilesTest : public testing::Test {
 protected:
  AllowedFilesTest() {
    std::string pattern = testing::TempDir() + "allowedXXXXXX";
    root_ = mkdtemp(pattern.data());
    for (const char* folder : {"/in", "/in/deep", "/out", "/inner"}) {
      mkdir((root_ + folder).c_str(), 0700);
    }
    for (const char* file : {"/in/a", "/in/deep/b", "/out/c", "/inner/d"}) {
      std::ofstream(root_ + file) << "text of " << file;
    }
    Link(root_ + "/out/c", "/in/to_file");
    Link(root_ + "/out", "/in/to_folder");
    Link("../out/c", "/in/relative");
    Link("deep/b", "/in/stays");
    Link(root_ + "/in/a", "/out/back");
    auto files = MakeAllowedFileSystem({root_ + "/in"}, "--allow");
    EXPECT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
  }
  ~AllowedFilesTest() override { std::filesystem::remove_all(root_); }

  void Link(const std::string& to, const std::string& name) {
    EXPECT_EQ(symlink(to.c_str(), (root_ + name).c_str()), 0);
  }
  absl::Status Try(const std::string& name) {
    return ReadFile(*files_, root_ + name).status();
  }

  std::string root_;
  std::unique_ptr<FileSystem> files_;
};

TEST_F(AllowedFilesTest, WhatIsAllowed) {
  for (const char* name :
       {"/in/a", "/in/deep/b", "/in/deep/../a", "/in/./a", "//in//a",
        "/out/../in/a", "/in/stays", "/out/back"}) {
    EXPECT_TRUE(Try(name).ok()) << name << ": " << Try(name);
    EXPECT_GE(files_->Stamp(root_ + name).size, 0) << name;
  }
  EXPECT_EQ(*ReadFile(*files_, root_ + "/in/stays"), "text of /in/deep/b");
  EXPECT_TRUE(absl::IsNotFound(Try("/in/nothing")));
  EXPECT_FALSE(*files_->Exists(root_ + "/in/nothing"));
  EXPECT_TRUE(*files_->IsDirectory(root_ + "/in/deep"));
  EXPECT_EQ(Try("/in").code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(AllowedFilesTest, WhatIsNot) {
  for (const char* name :
       {"/out/c", "/in/../out/c", "/in/to_file", "/in/to_folder/c",
        "/in/relative", "/inner/d", "/in/deep/../../out/c", "/out/nothing",
        "/in/to_folder/nothing", "", "/in/../../../../../../../etc/passwd"}) {
    const absl::Status status = Try(name);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(root_ + name));
    EXPECT_THAT(std::string(status.message()), HasSubstr("--allow"));
    EXPECT_LT(files_->Stamp(root_ + name).size, 0) << name;
    EXPECT_TRUE(
        absl::IsPermissionDenied(files_->Exists(root_ + name).status()));
    EXPECT_TRUE(
        absl::IsPermissionDenied(files_->IsDirectory(root_ + name).status()));
  }
  EXPECT_TRUE(absl::IsPermissionDenied(files_->Open("relative").status()));
  EXPECT_TRUE(
      absl::IsPermissionDenied(files_->Open("/proc/self/environ").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(
      files_->Open(root_ + std::string("/in/a\0b", 7)).status()));
}

TEST_F(AllowedFilesTest, Patterns) {
  EXPECT_THAT(*files_->Glob(root_ + "/in/deep/*"),
              ElementsAre(root_ + "/in/deep/b"));
  EXPECT_THAT(*files_->Glob(root_ + "/in/[a]"), ElementsAre(root_ + "/in/a"));
  EXPECT_THAT(*files_->Glob(root_ + "/in/a"), ElementsAre(root_ + "/in/a"));
  EXPECT_THAT(*files_->Glob(root_ + "/in/z*"), ElementsAre());
  for (const char* pattern :
       {"/out/*", "/in/*/../../out/*", "/in/to_folder/*", "/in/to_*/c", "/*/c",
        "/in/to_*", "/in/../out/*", "/out/c"}) {
    EXPECT_TRUE(
        absl::IsPermissionDenied(files_->Glob(root_ + pattern).status()))
        << pattern;
  }
}

TEST_F(AllowedFilesTest, SomeFoldersAreWritten) {
  const auto files =
      MakeAllowedFileSystem({root_ + "/in"}, "--allow", {root_ + "/in/deep"});
  ASSERT_TRUE(files.ok());
  const std::string path = root_ + "/in/deep/new";
  EXPECT_TRUE(WriteFile(**files, path, "text").ok());
  EXPECT_TRUE((*files)->Lock(path + ".lock").ok());
  EXPECT_TRUE((*files)->Rename(path, path + "er").ok());
  EXPECT_EQ(*ReadFile(**files, path + "er"), "text");
  EXPECT_TRUE((*files)->Remove(path + "er").ok());
  for (const std::string& elsewhere :
       {root_ + "/in/new", root_ + "/in/deep/../new", root_ + "/out/new"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(WriteFile(**files, elsewhere, "text")))
        << elsewhere;
  }
}

TEST_F(AllowedFilesTest, NothingIsWritten) {
  const std::string path = root_ + "/in/a";
  EXPECT_TRUE(absl::IsPermissionDenied(files_->Create(path).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(files_->Remove(path)));
  EXPECT_TRUE(absl::IsPermissionDenied(files_->Rename(path, path + "2")));
  EXPECT_TRUE(absl::IsPermissionDenied(files_->Lock(path).status()));
  EXPECT_TRUE(Try("/in/a").ok());
}

TEST_F(AllowedFilesTest, ALinkThatChangesMeanwhileOpensNothingElse) {
  std::atomic<bool> is_ending = false;
  std::thread changer([&] {
    const std::string link = root_ + "/in/changes";
    for (bool is_out = false; !is_ending; is_out = !is_out) {
      const std::string next = root_ + "/in/next";
      unlink(next.c_str());
      // By turns a file, and a link to one outside.
      if (is_out) {
        EXPECT_EQ(symlink((root_ + "/out/c").c_str(), next.c_str()), 0);
      } else {
        std::ofstream(next) << "text of /in/changes";
      }
      rename(next.c_str(), link.c_str());
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    const auto text = ReadFile(*files_, root_ + "/in/changes");
    if (text.ok()) {
      EXPECT_THAT(*text, testing::AnyOf("text of /in/changes", ""));
    }
  }
  is_ending = true;
  changer.join();
}

TEST_F(AllowedFilesTest, FoldersMustBeThere) {
  for (const char* folder : {"/nothing", "/in/a"}) {
    const auto files = MakeAllowedFileSystem({root_ + folder}, "--allow");
    EXPECT_TRUE(absl::IsInvalidArgument(files.status()));
    EXPECT_THAT(std::string(files.status().message()), HasSubstr("--allow: "));
  }
  EXPECT_FALSE(MakeAllowedFileSystem({""}, "--allow").ok());
  const auto all = MakeAllowedFileSystem({"/"}, "--allow");
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(ReadFile(**all, root_ + "/out/c").ok());
}

}  // namespace
}  // namespace penstock::io
