// A store on SQLite whose files were changed by somebody else: it is refused,
// or it holds what it held. There is no third way.
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/service/store/sqlite_store.h"
#include "penstock/service/store/store_directory_testing.h"

namespace penstock::store {
namespace {

using ::testing::HasSubstr;

constexpr char kDatabase[] = "store.db";
constexpr char kLog[] = "store.db-wal";
constexpr char kMark[] = "acknowledged";

SqliteOptions SmallOptions() {
  SqliteOptions options;
  options.page_bytes = 512;
  options.reserve_bytes = 64;
  return options;
}

struct Sample {
  Files files;
  std::vector<Record> records;
  uint64_t term = 0;
};

// A store as a crash leaves it: part of it in the database, part in the log.
Sample MakeSample(bool has_log) {
  const ScratchDirectory scratch(FastParent());
  const std::string directory = scratch.path() + "/store";
  Sample sample;
  for (int round = 0; round < 2; ++round) {
    auto store = OpenSqliteStore(directory, SmallOptions());
    EXPECT_TRUE(store.ok()) << store.status();
    sample.term = *(*store)->Campaign("a holder");
    for (int i = 0; i < 3; ++i) {
      const std::string key = absl::StrCat("job/", round, "/", i);
      EXPECT_TRUE((*store)
                      ->Commit({{key, std::string(30 + 150 * i, 'a' + i)},
                                {"job/0/1", absl::StrCat(round, i)}},
                               sample.term)
                      .ok());
    }
    EXPECT_TRUE(
        (*store)->Commit({{"job/0/0", std::nullopt}}, sample.term).ok());
    sample.records = *(*store)->Scan("");
    if (round == 1 && !has_log) store->reset();
    if (round == 1) sample.files = ReadFiles(directory);
  }
  EXPECT_EQ(sample.files.at(kLog).empty(), !has_log);
  sample.files.erase("store.db-shm");
  sample.files.erase("lock");
  sample.files.erase("reserve");
  return sample;
}

// How `files` open: true if they are refused. A wrong state fails the test.
bool IsRefused(const std::string& directory, const Files& files,
               const Sample& sample) {
  WriteFiles(directory, files);
  auto store = OpenSqliteStore(directory, SmallOptions());
  if (!store.ok()) {
    EXPECT_TRUE(absl::IsDataLoss(store.status()) ||
                absl::IsFailedPrecondition(store.status()))
        << store.status();
    // The evidence is as it was.
    const Files after = ReadFiles(directory);
    for (const auto& [name, bytes] : files) {
      EXPECT_TRUE(after.count(name) == 1 && after.at(name) == bytes) << name;
    }
    return true;
  }
  const auto records = (*store)->Scan("");
  if (!records.ok()) {
    EXPECT_TRUE(absl::IsDataLoss(records.status())) << records.status();
    return true;
  }
  EXPECT_EQ(*records, sample.records);
  const auto term = (*store)->Campaign("after");
  EXPECT_TRUE(term.ok()) << term.status();
  if (term.ok()) {
    EXPECT_EQ(*term, sample.term + 1);
  }
  return false;
}

class SqliteDamageTest : public testing::TestWithParam<bool> {
 protected:
  const ScratchDirectory scratch_{FastParent()};
  const std::string directory_ = scratch_.path() + "/store";
  const Sample sample_ = MakeSample(GetParam());
};

TEST_P(SqliteDamageTest, TheSampleIsWhole) {
  EXPECT_FALSE(IsRefused(directory_, sample_.files, sample_));
}

TEST_P(SqliteDamageTest, NoByteChangesUnnoticed) {
  int num_flips = 0;
  int num_refused = 0;
  for (const auto& [name, bytes] : sample_.files) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const int mask : {1 << (i % 8), 0xff}) {
        SCOPED_TRACE(absl::StrCat(name, ", byte ", i, " ^ ", mask));
        Files files = sample_.files;
        files[name][i] = static_cast<char>(files[name][i] ^ mask);
        num_refused += IsRefused(directory_, files, sample_) ? 1 : 0;
        ++num_flips;
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  EXPECT_GT(num_refused, num_flips / 4);
  RecordProperty("flips", num_flips);
  RecordProperty("refused", num_refused);
}

TEST_P(SqliteDamageTest, NoCutPassesUnnoticed) {
  for (const std::string name : {kDatabase, kLog, kMark}) {
    const size_t size = sample_.files.at(name).size();
    for (size_t length = 0; length < size; ++length) {
      SCOPED_TRACE(absl::StrCat(name, " cut at ", length, " of ", size));
      Files files = sample_.files;
      files[name].resize(length);
      const bool is_refused = IsRefused(directory_, files, sample_);
      // All of the log is needed, and of the database what is not in the log,
      // but for zeros at its end; nobody needs the mark but for the log.
      const bool is_page_cut = name == kDatabase && length + 512 <= size;
      if (name == kLog || (is_page_cut && !GetParam())) {
        EXPECT_TRUE(is_refused);
      }
      if (name == kMark) {
        EXPECT_FALSE(is_refused);
      }
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_P(SqliteDamageTest, NoFileGoesMissingUnnoticed) {
  for (const std::string name : {kDatabase, kLog, kMark}) {
    SCOPED_TRACE(name);
    Files files = sample_.files;
    const bool is_empty = files.at(name).empty();
    files.erase(name);
    EXPECT_EQ(IsRefused(directory_, files, sample_),
              name != kMark && !is_empty);
  }
}

TEST_P(SqliteDamageTest, AnOlderDatabaseIsNoticed) {
  // A page of an earlier time: each record's checksum is right.
  Files older;
  {
    const ScratchDirectory scratch(FastParent());
    const std::string directory = scratch.path() + "/store";
    WriteFiles(directory, sample_.files);
    { ASSERT_TRUE(OpenSqliteStore(directory, SmallOptions()).ok()); }
    older = ReadFiles(directory);
    {
      auto store = OpenSqliteStore(directory, SmallOptions());
      ASSERT_TRUE(store.ok());
      const uint64_t term = *(*store)->Campaign("x");
      ASSERT_TRUE((*store)->Commit({{"job/1/0", "changed"}}, term).ok());
    }
    Files mixed = ReadFiles(directory);
    ASSERT_EQ(mixed[kDatabase].size(), older[kDatabase].size());
    int num_changed = 0;
    for (size_t page = 0; page < mixed[kDatabase].size(); page += 512) {
      Files files = mixed;
      files[kDatabase].replace(page, 512, older[kDatabase], page, 512);
      if (files[kDatabase] == mixed[kDatabase]) continue;
      ++num_changed;
      // Page 1 only counts changes.
      WriteFiles(directory, files);
      EXPECT_EQ(OpenSqliteStore(directory, SmallOptions()).ok(), page == 0)
          << "page " << page / 512;
    }
    EXPECT_GE(num_changed, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, SqliteDamageTest,
                         testing::Values(false, true), [](const auto& info) {
                           return info.param ? "WithLog" : "WithoutLog";
                         });

TEST(SqliteDamage, SaysWhatToDo) {
  const Sample sample = MakeSample(true);
  const ScratchDirectory scratch(FastParent());
  const std::string directory = scratch.path() + "/store";
  Files files = sample.files;
  files[kLog].resize(files[kLog].size() - 1);
  WriteFiles(directory, files);
  const auto store = OpenSqliteStore(directory, SmallOptions());
  ASSERT_TRUE(absl::IsDataLoss(store.status())) << store.status();
  const std::string message(store.status().message());
  EXPECT_THAT(message, HasSubstr("which was acknowledged; the log ends with"));
  EXPECT_THAT(message, HasSubstr("penstock meta check " + directory));
  EXPECT_THAT(message, HasSubstr("penstock meta salvage " + directory));
}

}  // namespace
}  // namespace penstock::store
