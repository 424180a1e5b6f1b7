#include "penstock/service/store/sqlite_store.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/mutex.h"
#include "penstock/base/status.h"
#include "penstock/service/store/record_check.h"
#include "penstock/service/store/sqlite_connection.h"
#include "penstock/service/store/sqlite_format.h"
#include "penstock/service/store/store_files.h"

namespace penstock::store {
namespace {

// A log that a large commit made longer than this is cut.
constexpr int64_t kMaxLogBytes = 16 << 20;
// Free pages are given back once they are this many bytes and half of the file.
constexpr int64_t kMinFreeBytes = 16 << 20;
// At a time: each step is a commit, which the log must hold.
constexpr int kVacuumPages = 1024;

// A file shorter than SQLite's header is nothing that SQLite left behind.
constexpr uint64_t kMinDatabaseBytes = 512;

absl::Status MakeDatabase(const std::string& directory,
                          const SqliteOptions& options) {
  // Under another name until it is whole: a crash here leaves no store.
  const std::string path = directory + "/new.db";
  PENSTOCK_RETURN_IF_ERROR(MakeEmptyFile(path));
  unlink((path + "-wal").c_str());
  {
    PENSTOCK_ASSIGN_OR_RETURN(
        Connection connection,
        Connection::Open(path, Connection::Mode::kWrite, options.vfs));
    Head head;
    head.term = options.terms_before;
    PENSTOCK_RETURN_IF_ERROR(MakeSchema(connection, options.page_bytes, head));
  }
  unlink((path + "-wal").c_str());
  unlink((path + "-shm").c_str());
  return Publish(directory, path, DatabasePath(directory));
}

absl::Status MakeDatabaseIfNew(const std::string& directory,
                               const SqliteOptions& options) {
  const std::string path = DatabasePath(directory);
  const std::optional<uint64_t> num_bytes = FileBytes(path);
  if (num_bytes) {
    if (*num_bytes >= kMinDatabaseBytes) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        "expected a database; found a file of ", *num_bytes, " bytes: ", path));
  }
  if (FileBytes(WalPath(directory)).value_or(0) > 0 ||
      Acknowledged::Read(directory) > 0) {
    return absl::DataLossError(
        absl::StrCat("the database is gone, and its log is not: ", path));
  }
  return MakeDatabase(directory, options);
}

class SqliteStore final : public MetaStore {
 public:
  SqliteStore(const std::string& directory, const SqliteOptions& options)
      : directory_(directory),
        checkpoint_pages_(options.checkpoint_pages),
        reserve_(directory, options.reserve_bytes) {}

  ~SqliteStore() override;

  absl::Status Open(const SqliteOptions& options);

  absl::StatusOr<uint64_t> Campaign(std::string_view holder) override;
  absl::Status Commit(const WriteBatch& batch, uint64_t term) override;
  absl::StatusOr<std::vector<Record>> Scan(std::string_view prefix) override;

 private:
  absl::Status Connect(const SqliteOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Verify() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Runs `change` on the head inside a transaction that then writes it back.
  // Frees the reserve and tries again if the disk is full and `may_free`.
  absl::Status Transact(const std::function<absl::Status(Head&)>& change,
                        bool may_free) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TransactOnce(const std::function<absl::Status(Head&)>& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Apply(const Write& write, uint64_t term, Head& head)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // What is due after a commit. What fails here has not failed the commit.
  void Maintain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // With `is_cut`, the log's file is cut, too.
  absl::Status Checkpoint(bool is_cut) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status GiveFreePagesBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Shrink() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_;
  const int checkpoint_pages_;

  Mutex mutex_;
  Descriptor lock_ ABSL_GUARDED_BY(mutex_);
  Connection connection_ ABSL_GUARDED_BY(mutex_);
  HeadRow head_ ABSL_GUARDED_BY(mutex_);
  Statement begin_ ABSL_GUARDED_BY(mutex_);
  Statement commit_ ABSL_GUARDED_BY(mutex_);
  Statement find_ ABSL_GUARDED_BY(mutex_);
  Statement put_ ABSL_GUARDED_BY(mutex_);
  Statement delete_ ABSL_GUARDED_BY(mutex_);
  Statement free_pages_ ABSL_GUARDED_BY(mutex_);
  Acknowledged acknowledged_ ABSL_GUARDED_BY(mutex_);
  Reserve reserve_ ABSL_GUARDED_BY(mutex_);
  // Of the records that were there when it was opened.
  uint64_t needed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int page_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int log_pages_ ABSL_GUARDED_BY(mutex_) = 0;  // set by SQLite's hook
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);
};

SqliteStore::~SqliteStore() {
  MutexLock lock(&mutex_);
  // The file is then whole without its log. Not after an error: what is on the
  // disk is left as it is for who opens it next.
  if (is_open_ && broken_.ok()) {
    sqlite3_wal_checkpoint_v2(connection_.db(), nullptr,
                              SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  }
}

absl::Status SqliteStore::Open(const SqliteOptions& options) {
  MutexLock lock(&mutex_);
  PENSTOCK_RETURN_IF_ERROR(MakeDirectory(directory_));
  PENSTOCK_ASSIGN_OR_RETURN(lock_, LockDirectory(directory_));
  absl::Status status = Connect(options);
  if (absl::IsResourceExhausted(status) && reserve_.Free()) {
    status = Connect(options);
  }
  PENSTOCK_RETURN_IF_ERROR(status);
  is_open_ = true;
  reserve_.Take();
  status = Shrink();
  if (absl::IsResourceExhausted(status)) return absl::OkStatus();
  return status;
}

absl::Status SqliteStore::Connect(const SqliteOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(MakeDatabaseIfNew(directory_, options));
  PENSTOCK_ASSIGN_OR_RETURN(
      connection_, Connection::Open(DatabasePath(directory_),
                                    Connection::Mode::kWrite, options.vfs));
  PENSTOCK_RETURN_IF_ERROR(
      connection_.Run("PRAGMA synchronous = FULL; PRAGMA secure_delete = OFF; "
                      "PRAGMA cell_size_check = ON"));
  PENSTOCK_RETURN_IF_ERROR(connection_.Run(
      absl::StrCat("PRAGMA journal_size_limit = ", kMaxLogBytes).c_str()));
  PENSTOCK_RETURN_IF_ERROR(Verify());
  sqlite3_wal_hook(
      connection_.db(),
      [](void* log_pages, sqlite3*, const char*, int num_pages) {
        *static_cast<int*>(log_pages) = num_pages;
        return SQLITE_OK;
      },
      &log_pages_);
  sqlite3* const db = connection_.db();
  PENSTOCK_ASSIGN_OR_RETURN(begin_, Statement::Prepare(db, "BEGIN IMMEDIATE"));
  PENSTOCK_ASSIGN_OR_RETURN(commit_, Statement::Prepare(db, "COMMIT"));
  PENSTOCK_ASSIGN_OR_RETURN(
      find_, Statement::Prepare(
                 db, "SELECT crc, length(value) FROM record WHERE key = ?1"));
  PENSTOCK_ASSIGN_OR_RETURN(
      put_, Statement::Prepare(
                db, "INSERT OR REPLACE INTO record VALUES (?1, ?2, ?3, ?4)"));
  PENSTOCK_ASSIGN_OR_RETURN(
      delete_, Statement::Prepare(db, "DELETE FROM record WHERE key = ?1"));
  PENSTOCK_ASSIGN_OR_RETURN(free_pages_,
                            Statement::Prepare(db, "PRAGMA freelist_count"));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t page_bytes,
                            connection_.QueryInt("PRAGMA page_size"));
  page_bytes_ = static_cast<int>(page_bytes);
  return absl::OkStatus();
}

absl::Status SqliteStore::Verify() {
  const uint64_t acknowledged = Acknowledged::Read(directory_);
  PENSTOCK_RETURN_IF_ERROR(CheckSchema(connection_));
  // SQLite opens what it may not write, or does not know how to, for reading.
  if (sqlite3_db_readonly(connection_.db(), "main") != 0) {
    const std::string path = DatabasePath(directory_);
    if (access(path.c_str(), W_OK) != 0) {
      return absl::PermissionDeniedError(
          absl::StrCat("expected a database that may be written: ", path));
    }
    return absl::DataLossError(
        "the database's header names a version that SQLite cannot write");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::string mode,
                            connection_.QueryText("PRAGMA journal_mode"));
  if (mode != "wal") {
    return absl::DataLossError(
        absl::StrCat("expected a database with a log (wal); found ", mode));
  }
  PENSTOCK_ASSIGN_OR_RETURN(head_, HeadRow::Prepare(connection_));
  PENSTOCK_ASSIGN_OR_RETURN(const Head head, head_.Read());
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> problems,
                            QuickCheck(connection_));
  if (!problems.empty()) return absl::DataLossError(problems[0]);
  PENSTOCK_ASSIGN_OR_RETURN(needed_bytes_, VerifyRecords(connection_, head));
  if (head.sequence < acknowledged) {
    return absl::DataLossError(absl::StrCat(
        "expected commit ", acknowledged,
        ", which was acknowledged; the log ends with commit ", head.sequence));
  }
  PENSTOCK_RETURN_IF_ERROR(acknowledged_.Open(directory_));
  acknowledged_.Write(head.sequence);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SqliteStore::Campaign(std::string_view holder) {
  PENSTOCK_RETURN_IF_ERROR(ValidateHolder(holder));
  MutexLock lock(&mutex_);
  uint64_t term = 0;
  // Who cannot begin a term cannot delete anything either.
  PENSTOCK_RETURN_IF_ERROR(Transact(
      [&](Head& head) {
        term = ++head.term;
        head.holder = std::string(holder);
        return absl::OkStatus();
      },
      /*may_free=*/true));
  return term;
}

absl::Status SqliteStore::Commit(const WriteBatch& batch, uint64_t term) {
  PENSTOCK_RETURN_IF_ERROR(ValidateBatch(batch));
  MutexLock lock(&mutex_);
  const bool only_deletes = OnlyDeletes(batch);
  // Without the reserve, the space that is left is for deletes.
  if (broken_.ok() && !only_deletes && !reserve_.Take()) {
    PENSTOCK_ASSIGN_OR_RETURN(const Head head, head_.Read());
    PENSTOCK_RETURN_IF_ERROR(CheckTerm(term, head.term));
    return absl::ResourceExhaustedError(
        absl::StrCat("the disk of the store ", directory_,
                     " is full: the reserve cannot be taken. Free some space, "
                     "or delete jobs that have ended."));
  }
  return Transact(
      [&](Head& head) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        PENSTOCK_RETURN_IF_ERROR(CheckTerm(term, head.term));
        for (const Write& write : batch) {
          PENSTOCK_RETURN_IF_ERROR(Apply(write, term, head));
        }
        return absl::OkStatus();
      },
      only_deletes);
}

absl::StatusOr<std::vector<Record>> SqliteStore::Scan(std::string_view prefix) {
  MutexLock lock(&mutex_);
  PENSTOCK_RETURN_IF_ERROR(broken_);
  std::vector<Record> found;
  PENSTOCK_RETURN_IF_ERROR(
      ForEachRow(connection_, prefix, false, [&found](const Row& row) {
        if (!row.is_intact) return DamagedRecord(row.key);
        found.push_back({std::string(row.key), std::string(row.value)});
        return absl::OkStatus();
      }));
  return found;
}

absl::Status SqliteStore::Transact(
    const std::function<absl::Status(Head&)>& change, bool may_free) {
  PENSTOCK_RETURN_IF_ERROR(broken_);
  absl::Status status = TransactOnce(change);
  if (absl::IsResourceExhausted(status) && may_free && reserve_.Free()) {
    status = TransactOnce(change);
  }
  switch (status.code()) {
    case absl::StatusCode::kOk:
      Maintain();
      return status;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kResourceExhausted:
      return status;
    default:
      broken_ = status;
      return status;
  }
}

absl::Status SqliteStore::TransactOnce(
    const std::function<absl::Status(Head&)>& change) {
  PENSTOCK_RETURN_IF_ERROR(begin_.Run());
  uint64_t sequence = 0;
  absl::Status status = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // Inside the transaction, where no other process can begin a term.
    PENSTOCK_ASSIGN_OR_RETURN(Head head, head_.Read());
    PENSTOCK_RETURN_IF_ERROR(change(head));
    sequence = ++head.sequence;
    PENSTOCK_RETURN_IF_ERROR(head_.Write(head));
    return commit_.Run();
  }();
  if (status.ok()) {
    acknowledged_.Write(sequence);
    return status;
  }
  // SQLite may have rolled back by itself. What it cannot undo in memory it
  // ignores in the log: there is no commit in it.
  if (sqlite3_get_autocommit(connection_.db()) == 0) {
    PENSTOCK_RETURN_IF_ERROR(connection_.Run("ROLLBACK"));
  }
  return status;
}

absl::Status SqliteStore::Apply(const Write& write, uint64_t term, Head& head) {
  find_.BindBytes(1, write.key);
  {
    StatementEnd end(find_);
    PENSTOCK_ASSIGN_OR_RETURN(const bool is_there, find_.Step());
    if (is_there) {
      --head.num_records;
      head.digest -= DigestOf(write.key, static_cast<uint32_t>(find_.Int(0)));
      head.live_bytes -= write.key.size() + static_cast<uint64_t>(find_.Int(1));
    } else if (!write.value) {
      return absl::OkStatus();
    }
  }
  if (!write.value) {
    delete_.BindBytes(1, write.key);
    return delete_.Run();
  }
  const uint32_t crc = RecordCrc(write.key, *write.value, term);
  ++head.num_records;
  head.digest += DigestOf(write.key, crc);
  head.live_bytes += write.key.size() + write.value->size();
  put_.BindBytes(1, write.key);
  put_.BindInt(2, static_cast<int64_t>(term));
  put_.BindInt(3, crc);
  put_.BindBytes(4, *write.value);
  return put_.Run();
}

void SqliteStore::Maintain() {
  absl::Status status = absl::OkStatus();
  if (!reserve_.is_held()) {
    status = MakeRoom();
  } else if (log_pages_ >= checkpoint_pages_) {
    status = Checkpoint(int64_t{log_pages_} * page_bytes_ > kMaxLogBytes);
  }
  if (status.ok()) status = GiveFreePagesBack();
  // A full disk is tried again after the next commit; nothing else is.
  if (!status.ok() && !absl::IsResourceExhausted(status)) broken_ = status;
}

absl::Status SqliteStore::Checkpoint(bool is_cut) {
  sqlite3* const db = connection_.db();
  // A reader in another process (a check of the store) is not waited for.
  sqlite3_busy_timeout(db, 0);
  const int code = sqlite3_wal_checkpoint_v2(
      db, nullptr,
      is_cut ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, nullptr,
      nullptr);
  sqlite3_busy_timeout(db, kBusyMillis);
  if (code == SQLITE_OK) {
    if (is_cut) log_pages_ = 0;
    return absl::OkStatus();
  }
  if ((code & 0xff) == SQLITE_BUSY) return absl::OkStatus();
  return SqliteError(db, code, "cannot copy the log into the database");
}

// On a disk that was full: gives back what deletes have freed, so that the
// reserve can be taken again.
absl::Status SqliteStore::MakeRoom() {
  PENSTOCK_RETURN_IF_ERROR(Checkpoint(/*is_cut=*/true));
  PENSTOCK_RETURN_IF_ERROR(connection_.Run("PRAGMA incremental_vacuum"));
  PENSTOCK_RETURN_IF_ERROR(Checkpoint(/*is_cut=*/true));
  reserve_.Take();
  return absl::OkStatus();
}

absl::Status SqliteStore::GiveFreePagesBack() {
  int64_t num_free = 0;
  {
    StatementEnd end(free_pages_);
    PENSTOCK_ASSIGN_OR_RETURN(const bool has_row, free_pages_.Step());
    if (has_row) num_free = free_pages_.Int(0);
  }
  if (num_free * page_bytes_ < kMinFreeBytes) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(int64_t num_pages,
                            connection_.QueryInt("PRAGMA page_count"));
  const std::string vacuum =
      absl::StrCat("PRAGMA incremental_vacuum(", kVacuumPages, ")");
  while (num_free * page_bytes_ >= kMinFreeBytes && num_free * 2 > num_pages) {
    PENSTOCK_RETURN_IF_ERROR(connection_.Run(vacuum.c_str()));
    PENSTOCK_RETURN_IF_ERROR(Checkpoint(/*is_cut=*/true));
    num_free -= kVacuumPages;
    num_pages -= kVacuumPages;
  }
  return absl::OkStatus();
}

// Pages that are mostly empty are no free pages: where many records went, one
// here and one there, the whole file is written anew.
absl::Status SqliteStore::Shrink() {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t num_pages,
                            connection_.QueryInt("PRAGMA page_count"));
  const uint64_t num_bytes = static_cast<uint64_t>(num_pages) * page_bytes_;
  if (num_bytes <= 2 * needed_bytes_ + kMinFreeBytes) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(connection_.Run("VACUUM"));
  return Checkpoint(/*is_cut=*/true);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetaStore>> OpenSqliteStore(
    const std::string& directory, const SqliteOptions& options) {
  auto store = std::make_unique<SqliteStore>(directory, options);
  const absl::Status status = store->Open(options);
  if (status.ok()) return store;
  if (!absl::IsDataLoss(status)) return status;
  return absl::DataLossError(
      absl::StrCat("the store ", directory, " is damaged: ", status.message(),
                   ". Nothing was changed. `penstock meta check ", directory,
                   "` lists the damage, `penstock meta salvage ", directory,
                   " NEW` makes a new store of what is whole."));
}

}  // namespace penstock::store
