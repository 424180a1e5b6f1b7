#include "penstock/engine/file_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/io/fake_files.h"

namespace penstock::engine {
namespace {

FileManifest ManifestOf(const FileLog& log) {
  FileManifest manifest;
  const auto records = log.Since(0);
  for (const FileLog::Record& record : *records) {
    manifest.insert_or_assign(record.first, record.second);
  }
  return manifest;
}

TEST(FileLogTest, WritesDownWhatIsOpened) {
  io::FakeFiles files;
  files.contents = {{"a", "1234"}, {"b", ""}};
  FileLog log(&files);
  EXPECT_TRUE(log.Open("a").ok());
  EXPECT_TRUE(log.Open("b").ok());
  EXPECT_TRUE(log.Open("a").ok());
  EXPECT_FALSE(log.Open("c").ok());
  const auto records = log.Since(0);
  ASSERT_EQ(records->size(), 3);
  EXPECT_EQ(records->at(0).first.name, "a");
  EXPECT_EQ(records->at(0).second.size, 4);
  EXPECT_EQ(records->at(2).second.size, -1);
  EXPECT_EQ(log.Since(2)->size(), 1);
  EXPECT_EQ(log.Since(3)->size(), 0);

  files.contents["a"] = "12";
  EXPECT_TRUE(log.Open("a").ok());
  ASSERT_EQ(log.Since(3)->size(), 1);
  EXPECT_EQ(log.Since(3)->at(0).second.size, 2);
}

TEST(FileLogTest, ChangesAreSeen) {
  io::FakeFiles files;
  files.contents = {{"a", "1234"}};
  FileLog log(&files);
  log.Open("a").IgnoreError();
  log.Open("missing").IgnoreError();
  const FileManifest manifest = ManifestOf(log);
  EXPECT_TRUE(IsUnchanged(files, manifest));
  files.contents["a"] = "123";
  EXPECT_FALSE(IsUnchanged(files, manifest));
  files.contents["a"] = "1234";
  EXPECT_TRUE(IsUnchanged(files, manifest));
  files.contents["missing"] = "";
  EXPECT_FALSE(IsUnchanged(files, manifest));
  files.contents.clear();
  EXPECT_FALSE(IsUnchanged(files, manifest));
}

TEST(FileLogTest, HasABound) {
  io::FakeFiles files;
  FileLog log(&files);
  for (size_t i = 0; i < FileLog::kMaxNames; ++i) {
    log.Open(std::to_string(i)).IgnoreError();
  }
  EXPECT_TRUE(log.Since(0).has_value());
  log.Open("one more").IgnoreError();
  EXPECT_FALSE(log.Since(0).has_value());
}

}  // namespace
}  // namespace penstock::engine
