#include "penstock/service/store/check.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/service/store/sqlite_store.h"
#include "penstock/service/store/store_directory_testing.h"

namespace penstock::store {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

constexpr int kRecords = 300;
constexpr char kDatabase[] = "store.db";

std::string Key(int i) { return absl::StrFormat("key/%04d", i); }
std::string Value(int i) { return absl::StrFormat("value %04d of many", i); }

class CheckTest : public testing::Test {
 protected:
  CheckTest() {
    auto store = OpenSqliteStore(directory_, Options());
    const uint64_t first = *(*store)->Campaign("first");
    WriteBatch batch;
    for (int i = 0; i < kRecords; ++i) batch.push_back({Key(i), Value(i)});
    EXPECT_TRUE((*store)->Commit(batch, first).ok());
    const uint64_t second = *(*store)->Campaign("second");
    EXPECT_TRUE((*store)->Commit({{Key(7), Value(7)}}, second).ok());
    EXPECT_EQ(second, 2);
  }

  static SqliteOptions Options() {
    SqliteOptions options;
    options.page_bytes = 512;
    options.reserve_bytes = 64;
    return options;
  }

  // Changes a byte of record `i`'s value.
  void Damage(int i) {
    Files files = ReadFiles(directory_);
    std::string& bytes = files[kDatabase];
    const size_t place = bytes.find(Value(i));
    ASSERT_NE(place, std::string::npos);
    bytes[place] = 'V';
    WriteFiles(directory_, files);
  }

  // Makes nonsense of the page that record `i` is on.
  void DamagePage(int i) {
    Files files = ReadFiles(directory_);
    std::string& bytes = files[kDatabase];
    const size_t place = bytes.find(Value(i));
    ASSERT_NE(place, std::string::npos);
    bytes.replace(place / 512 * 512, 512, std::string(512, '\xee'));
    WriteFiles(directory_, files);
  }

  const ScratchDirectory scratch_{FastParent()};
  const std::string directory_ = scratch_.path() + "/store";
  const std::string new_directory_ = scratch_.path() + "/new";
};

TEST_F(CheckTest, ReportsAStoreThatIsWhole) {
  const Files before = ReadFiles(directory_);
  const auto report = Check(directory_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->problems, IsEmpty());
  EXPECT_THAT(report->damaged_keys, IsEmpty());
  EXPECT_EQ(report->num_records, kRecords);
  EXPECT_THAT(report->records_by_term,
              ElementsAre(Pair(1, kRecords - 1), Pair(2, 1)));
  EXPECT_EQ(report->term, 2);
  EXPECT_EQ(report->holder, "second");
  EXPECT_EQ(report->sequence, 4);
  EXPECT_EQ(report->acknowledged, 4);
  EXPECT_EQ(report->live_bytes, kRecords * (Key(0).size() + Value(0).size()));
  EXPECT_EQ(report->file_bytes, before.at(kDatabase).size());
  const Files after = ReadFiles(directory_);
  EXPECT_EQ(after.at(kDatabase), before.at(kDatabase));
}

TEST_F(CheckTest, LooksAtAStoreInUse) {
  const auto store = OpenSqliteStore(directory_, Options());
  ASSERT_TRUE(store.ok()) << store.status();
  const uint64_t term = *(*store)->Campaign("third");
  ASSERT_TRUE((*store)->Commit({{"more", "x"}}, term).ok());
  const auto report = Check(directory_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->problems, IsEmpty());
  EXPECT_EQ(report->num_records, kRecords + 1);
  ASSERT_TRUE((*store)->Commit({{"more", "y"}}, term).ok());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Salvage(directory_, new_directory_).status()));
}

TEST_F(CheckTest, SaysThatThereIsNoStore) {
  EXPECT_TRUE(absl::IsNotFound(Check(scratch_.path() + "/none").status()));
  EXPECT_TRUE(absl::IsNotFound(
      Salvage(scratch_.path() + "/none", new_directory_).status()));
}

TEST_F(CheckTest, NamesDamagedRecords) {
  Damage(7);
  Damage(200);
  const auto report = Check(directory_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->damaged_keys, ElementsAre(Key(7), Key(200)));
  EXPECT_EQ(report->num_damaged, 2);
  EXPECT_EQ(report->num_records, kRecords - 2);
  EXPECT_THAT(report->problems,
              ElementsAre(HasSubstr("2 records have wrong checksums, the first "
                                    "is \"key/0007\"")));
}

TEST_F(CheckTest, SalvagesAllButDamagedRecords) {
  Damage(7);
  Damage(200);
  const Files before = ReadFiles(directory_);
  const auto report = Salvage(directory_, new_directory_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->num_salvaged, kRecords - 2);
  EXPECT_THAT(report->damaged_keys, ElementsAre(Key(7), Key(200)));
  EXPECT_EQ(report->num_expected, kRecords);
  EXPECT_FALSE(report->gap.has_value());
  EXPECT_EQ(report->num_lost_commits, 0);
  EXPECT_EQ(ReadFiles(directory_).at(kDatabase), before.at(kDatabase));

  const auto store = OpenSqliteStore(new_directory_);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto found = (*store)->Scan("");
  ASSERT_EQ(found->size(), kRecords - 2);
  EXPECT_EQ((*found)[6], (Record{Key(6), Value(6)}));
  EXPECT_EQ((*found)[7], (Record{Key(8), Value(8)}));
  // Whoever held a term of the old store holds none here.
  EXPECT_GT(report->term, 2);
  EXPECT_TRUE(absl::IsAborted((*store)->Commit({{"x", "y"}}, 2)));
}

TEST_F(CheckTest, SalvagesAroundAPageThatCannotBeRead) {
  DamagePage(150);
  const auto check = Check(directory_);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_THAT(check->problems, Not(IsEmpty()));
  const auto report = Salvage(directory_, new_directory_);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_TRUE(report->gap.has_value());
  ASSERT_TRUE(report->gap->after && report->gap->before);
  EXPECT_LT(*report->gap->after, Key(150));
  EXPECT_GT(*report->gap->before, Key(150));
  EXPECT_GT(report->num_salvaged, kRecords - 30);
  EXPECT_LT(report->num_salvaged, kRecords);
  const auto store = OpenSqliteStore(new_directory_);
  ASSERT_TRUE(store.ok()) << store.status();
  for (const Record& record : AllRecords(**store)) {
    int i = 0;
    ASSERT_EQ(sscanf(record.key.c_str(), "key/%d", &i), 1);
    EXPECT_EQ(record.value, Value(i));
  }
}

TEST_F(CheckTest, ReportsCommitsThatAreMissing) {
  Files files;
  {
    const auto store = OpenSqliteStore(directory_, Options());
    const uint64_t term = *(*store)->Campaign("third");
    ASSERT_TRUE((*store)->Commit({{"lost", "x"}}, term).ok());
    files = ReadFiles(directory_);
  }
  files.erase("store.db-wal");
  files.erase("store.db-shm");
  WriteFiles(directory_, files);
  const auto report = Check(directory_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->problems,
              ElementsAre("expected commit 6, which was acknowledged; the log "
                          "ends with commit 4"));
  EXPECT_FALSE(OpenSqliteStore(directory_, Options()).ok());
  const auto salvage = Salvage(directory_, new_directory_);
  ASSERT_TRUE(salvage.ok()) << salvage.status();
  EXPECT_EQ(salvage->num_lost_commits, 2);
  EXPECT_EQ(salvage->num_salvaged, kRecords);
}

TEST_F(CheckTest, ReportsAFileThatIsNoDatabase) {
  for (const std::string& bytes :
       {std::string(), std::string("short"), std::string(4096, 'x')}) {
    SCOPED_TRACE(bytes.size());
    Files files = ReadFiles(directory_);
    files[kDatabase] = bytes;
    WriteFiles(directory_, files);
    const auto report = Check(directory_);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(report->problems, Not(IsEmpty()));
    EXPECT_TRUE(absl::IsDataLoss(Salvage(directory_, new_directory_).status()));
    EXPECT_THAT(ReadFiles(new_directory_), IsEmpty());
  }
}

TEST_F(CheckTest, SalvageKeepsWhatIsThere) {
  EXPECT_TRUE(absl::IsAlreadyExists(Salvage(directory_, directory_).status()));
}

// Whatever happens to a byte, a salvaged store opens, and has no record that
// the old one had not.
TEST_F(CheckTest, SalvagesNothingThatWasNotThere) {
  const Files whole = ReadFiles(directory_);
  for (size_t i = 0; i < whole.at(kDatabase).size(); i += 97) {
    SCOPED_TRACE(i);
    Files files = whole;
    files[kDatabase][i] = static_cast<char>(files[kDatabase][i] ^ 0x55);
    WriteFiles(directory_, files);
    ASSERT_TRUE(Check(directory_).ok() || i < 4096);
    WriteFiles(new_directory_, {});
    ASSERT_EQ(rmdir(new_directory_.c_str()), 0);
    if (!Salvage(directory_, new_directory_).ok()) {
      WriteFiles(new_directory_, {});
      continue;
    }
    const auto store = OpenSqliteStore(new_directory_);
    ASSERT_TRUE(store.ok()) << store.status();
    for (const Record& record : AllRecords(**store)) {
      int n = 0;
      ASSERT_EQ(sscanf(record.key.c_str(), "key/%d", &n), 1);
      ASSERT_EQ(record, (Record{Key(n), Value(n)}));
    }
  }
}

}  // namespace
}  // namespace penstock::store
