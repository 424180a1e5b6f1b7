// What only the store on SQLite does: files, locks, space.
#include "penstock/service/store/sqlite_store.h"

#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/service/store/store_directory_testing.h"

namespace penstock::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

uint64_t DirectoryBytes(const std::string& directory) {
  uint64_t num_bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    num_bytes += entry.file_size();
  }
  return num_bytes;
}

class SqliteStoreTest : public testing::Test {
 protected:
  // As an error message; empty if it opened.
  std::string Open(const SqliteOptions& options = {}) {
    store_.reset();
    auto store = OpenSqliteStore(directory_, options);
    if (!store.ok()) return std::string(store.status().message());
    store_ = *std::move(store);
    return "";
  }

  const ScratchDirectory scratch_{FastParent()};
  const std::string directory_ = scratch_.path() + "/store";
  std::unique_ptr<MetaStore> store_;
};

TEST_F(SqliteStoreTest, FilesAreForTheirOwnerAlone) {
  ASSERT_EQ(Open(), "");
  const uint64_t term = *store_->Campaign("a");
  ASSERT_TRUE(store_->Commit({{"a", "1"}}, term).ok());
  struct stat found;
  ASSERT_EQ(stat(directory_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    names.push_back(entry.path().filename());
    ASSERT_EQ(stat(entry.path().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600) << entry.path();
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("store.db", "store.db-wal",
                                                   "store.db-shm", "lock",
                                                   "acknowledged", "reserve"));
  EXPECT_EQ(std::filesystem::file_size(directory_ + "/reserve"), 16 << 20);
}

TEST_F(SqliteStoreTest, NeedsAPlaceForItsDirectory) {
  EXPECT_TRUE(absl::IsNotFound(
      OpenSqliteStore(scratch_.path() + "/no/store").status()));
  std::ofstream(directory_) << "a file";
  EXPECT_THAT(Open(), HasSubstr("expected a directory; found a file"));
}

TEST_F(SqliteStoreTest, OneProcessHasItOpen) {
  ASSERT_EQ(Open(), "");
  const std::string said = RunInChild([this] {
    const auto store = OpenSqliteStore(directory_);
    return std::string(store.status().message());
  });
  EXPECT_THAT(said, HasSubstr(absl::StrCat("process ", getpid(), " has it")));
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSqliteStore(directory_).status()));
  store_.reset();
  EXPECT_EQ(RunInChild([this] {
              const auto store = OpenSqliteStore(directory_);
              return store.ok() ? "" : std::string(store.status().message());
            }),
            "");
}

TEST_F(SqliteStoreTest, AZombieProcessFailsByItsTerm) {
  ASSERT_EQ(Open(), "");
  const uint64_t term = *store_->Campaign("zombie");
  ASSERT_TRUE(store_->Commit({{"a", "old"}}, term).ok());
  ASSERT_EQ(unlink((directory_ + "/lock").c_str()), 0);
  EXPECT_EQ(
      RunInChild([this]() -> std::string {
        const auto store = OpenSqliteStore(directory_);
        if (!store.ok()) return std::string(store.status().message());
        const auto next = (*store)->Campaign("next");
        if (!next.ok()) return std::string(next.status().message());
        return std::string((*store)->Commit({{"a", "new"}}, *next).message());
      }),
      "");
  EXPECT_TRUE(absl::IsAborted(store_->Commit({{"a", "zombie"}}, term)));
  EXPECT_THAT(*store_->Scan(""), ElementsAre(Record{"a", "new"}));
}

TEST_F(SqliteStoreTest, RefusesAnUnknownFormat) {
  ASSERT_EQ(Open(), "");
  store_.reset();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((directory_ + "/store.db").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(db, "UPDATE head SET format = 7", nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(db);
  EXPECT_EQ(Open(),
            "expected a store of format 1; found 7. Open it with the version "
            "of penstock that wrote it.");
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSqliteStore(directory_).status()));
}

TEST_F(SqliteStoreTest, AnUnfinishedStoreIsMadeAnew) {
  std::filesystem::create_directory(directory_);
  std::ofstream(directory_ + "/new.db") << "the beginning of";
  std::ofstream(directory_ + "/new.db-wal") << "a store";
  EXPECT_EQ(Open(), "");
  EXPECT_TRUE(store_->Campaign("a").ok());
}

TEST_F(SqliteStoreTest, ScanNamesTheDamagedRecord) {
  ASSERT_EQ(Open(), "");
  const uint64_t term = *store_->Campaign("a");
  ASSERT_TRUE(store_->Commit({{"a", "1"}, {"b\x01", "2"}}, term).ok());
  // Behind the store's back, as a disk would.
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((directory_ + "/store.db").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(db, "UPDATE record SET value = x'33' WHERE key > x'61'",
                   nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(db);
  EXPECT_THAT(*store_->Scan("a"), ElementsAre(Record{"a", "1"}));
  const auto found = store_->Scan("");
  ASSERT_TRUE(absl::IsDataLoss(found.status())) << found.status();
  EXPECT_THAT(std::string(found.status().message()),
              HasSubstr("the record \"b\\x01\" is damaged"));
  EXPECT_THAT(Open(), HasSubstr("the record \"b\\x01\" is damaged"));
}

TEST_F(SqliteStoreTest, StaysSmallWhileRecordsComeAndGo) {
  ASSERT_EQ(Open(), "");
  const uint64_t term = *store_->Campaign("a");
  constexpr int kLive = 40;
  const std::string value(256 << 10, 'v');
  const uint64_t live = kLive * value.size();
  for (int i = 0; i < 1000; ++i) {
    WriteBatch batch = {{absl::StrCat(i), value}};
    if (i >= kLive) batch.push_back({absl::StrCat(i - kLive), std::nullopt});
    ASSERT_TRUE(store_->Commit(batch, term).ok());
    ASSERT_LE(DirectoryBytes(directory_), 2 * live + (64 << 20)) << i;
  }
  // All at once: 256 MB, which then go.
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(store_->Commit({{absl::StrCat(i), value}}, term).ok());
  }
  WriteBatch all;
  for (int i = 0; i < 1000; ++i) all.push_back({absl::StrCat(i), std::nullopt});
  ASSERT_TRUE(store_->Commit(all, term).ok());
  EXPECT_LE(DirectoryBytes(directory_), 64 << 20);
  EXPECT_TRUE(store_->Scan("")->empty());
}

TEST_F(SqliteStoreTest, IsWrittenAnewWherePagesAreMostlyEmpty) {
  ASSERT_EQ(Open(), "");
  const uint64_t term = *store_->Campaign("a");
  constexpr int kRecords = 600'000;
  WriteBatch put;
  WriteBatch thin;
  for (int i = 0; i < kRecords; ++i) {
    put.push_back({absl::StrFormat("k%07d", i), std::string(100, 'v')});
    if (i % 3 != 0) thin.push_back({put.back().key, std::nullopt});
  }
  ASSERT_TRUE(store_->Commit(put, term).ok());
  ASSERT_TRUE(store_->Commit(thin, term).ok());
  const uint64_t live = kRecords / 3 * (8 + 100);
  EXPECT_LE(DirectoryBytes(directory_), 2 * live + (64 << 20));
  ASSERT_EQ(Open(), "");
  EXPECT_EQ(store_->Scan("")->size(), kRecords / 3);
  EXPECT_LE(DirectoryBytes(directory_), 2 * live + (40 << 20));
}

// Fills the disk, deletes, writes again. Returns what went wrong.
std::string FillAndEmpty(MetaStore& store, int max_records) {
  const auto term = store.Campaign("full");
  if (!term.ok()) return std::string(term.status().message());
  const std::string value(64 << 10, 'v');
  int num_records = 0;
  absl::Status status;
  while (num_records < max_records) {
    status =
        store.Commit({{absl::StrFormat("%04d", num_records), value}}, *term);
    if (!status.ok()) break;
    ++num_records;
  }
  if (!absl::IsResourceExhausted(status)) {
    return absl::StrCat("expected a full disk; found ", status.ToString());
  }
  if (num_records < 8) return absl::StrCat("full after ", num_records);
  const auto full = store.Scan("");
  if (!full.ok() || full->size() != static_cast<size_t>(num_records)) {
    return absl::StrCat("expected ", num_records, " records when full; found ",
                        full.ok() ? full->size() : 0);
  }
  for (int i = 0; i < num_records; ++i) {
    status = store.Commit({{absl::StrFormat("%04d", i), std::nullopt}}, *term);
    if (!status.ok()) {
      return absl::StrCat("cannot delete record ", i, " of ", num_records, ": ",
                          status.ToString());
    }
  }
  for (int i = 0; i < num_records / 2; ++i) {
    status = store.Commit({{absl::StrFormat("%04d", i), value}}, *term);
    if (!status.ok()) {
      return absl::StrCat("cannot write again: ", status.ToString());
    }
  }
  const auto again = store.Scan("");
  if (!again.ok()) return std::string(again.status().message());
  return again->size() == static_cast<size_t>(num_records / 2)
             ? ""
             : absl::StrCat("found ", again->size(), " records at the end");
}

TEST_F(SqliteStoreTest, DeletesOnAFullDiskAndRecovers) {
  constexpr char kNotAllowed[] = "not allowed to mount";
  ASSERT_EQ(mkdir(directory_.c_str(), 0700), 0);
  const std::string said = RunInChild([&]() -> std::string {
    // Seen by this process alone, and gone with it.
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", directory_.c_str(), "tmpfs", 0, "size=8m") != 0) {
      return kNotAllowed;
    }
    SqliteOptions options;
    options.reserve_bytes = 1 << 20;
    {
      const auto store = OpenSqliteStore(directory_, options);
      if (!store.ok()) return std::string(store.status().message());
      std::string problem = FillAndEmpty(**store, 200);
      if (!problem.empty()) return problem;
      const uint64_t term = *(*store)->Campaign("again");
      for (int i = 0; i < 200; ++i) {
        if (!(*store)
                 ->Commit({{absl::StrCat(i), std::string(64 << 10, 'w')}}, term)
                 .ok()) {
          break;
        }
      }
    }
    // A dispatcher that starts while the disk is full.
    const auto store = OpenSqliteStore(directory_, options);
    if (!store.ok()) return std::string(store.status().message());
    const auto term = (*store)->Campaign("starts when full");
    if (!term.ok()) return std::string(term.status().message());
    for (const Record& record : AllRecords(**store)) {
      const absl::Status status =
          (*store)->Commit({{record.key, std::nullopt}}, *term);
      if (!status.ok()) return status.ToString();
    }
    return std::string((*store)->Commit({{"a", "1"}}, *term).message());
  });
  if (said == kNotAllowed) GTEST_SKIP() << said;
  EXPECT_EQ(said, "");
}

TEST_F(SqliteStoreTest, ALimitOfTheFileSizeIsAFullDisk) {
  EXPECT_EQ(RunInChild([&]() -> std::string {
              signal(SIGXFSZ, SIG_IGN);
              SqliteOptions options;
              options.reserve_bytes = 64 << 10;
              const auto store = OpenSqliteStore(directory_, options);
              if (!store.ok()) return std::string(store.status().message());
              const rlimit limit = {3 << 20, RLIM_INFINITY};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit";
              const auto term = (*store)->Campaign("limited");
              const std::string value(64 << 10, 'v');
              int num_records = 0;
              absl::Status status;
              while (num_records < 200 && status.ok()) {
                status = (*store)->Commit({{absl::StrCat(num_records), value}},
                                          *term);
                num_records += status.ok() ? 1 : 0;
              }
              if (!absl::IsResourceExhausted(status)) return status.ToString();
              const rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
              if (setrlimit(RLIMIT_FSIZE, &none) != 0) return "a limit";
              status = (*store)->Commit({{"more", value}}, *term);
              if (!status.ok()) return status.ToString();
              const auto found = (*store)->Scan("");
              if (!found.ok()) return found.status().ToString();
              return found->size() == static_cast<size_t>(num_records) + 1
                         ? ""
                         : "records are missing";
            }),
            "");
}

}  // namespace
}  // namespace penstock::store
