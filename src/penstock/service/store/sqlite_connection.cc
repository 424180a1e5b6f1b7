#include "penstock/service/store/sqlite_connection.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/service/store/meta_store.h"

namespace penstock::store {
namespace {

bool IsNoSpace(int number) {
  return number == ENOSPC || number == EDQUOT || number == EFBIG;
}

// Whether the last write that failed, to the database or its log, found no
// space. SQLite itself knows a full disk, but neither a quota nor a limit.
bool IsWriteWithoutSpace(sqlite3* db) {
  for (const int which :
       {SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER}) {
    sqlite3_file* file = nullptr;
    int number = 0;
    if (sqlite3_file_control(db, "main", which, &file) == SQLITE_OK &&
        file != nullptr && file->pMethods != nullptr &&
        file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &number) ==
            SQLITE_OK &&
        IsNoSpace(number)) {
      return true;
    }
  }
  return false;
}

absl::StatusCode CodeOf(sqlite3* db, int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_TOOBIG:  // larger than any record that a store accepts
    case SQLITE_ERROR:   // the statements are constant: the tables are not ours
      return absl::StatusCode::kDataLoss;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::StatusCode::kUnavailable;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_CANTOPEN:
      return db != nullptr && IsNoSpace(sqlite3_system_errno(db))
                 ? absl::StatusCode::kResourceExhausted
                 : absl::StatusCode::kPermissionDenied;
    case SQLITE_IOERR:
      if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC) {
        return absl::StatusCode::kInternal;
      }
      if (db != nullptr &&
          (code == SQLITE_IOERR_WRITE ? IsWriteWithoutSpace(db)
                                      : IsNoSpace(sqlite3_system_errno(db)))) {
        return absl::StatusCode::kResourceExhausted;
      }
      return absl::StatusCode::kInternal;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status SqliteError(sqlite3* db, int code, std::string_view what) {
  // The message is that of the last call, which may have been a later one.
  const char* said = db != nullptr && sqlite3_extended_errcode(db) == code
                         ? sqlite3_errmsg(db)
                         : sqlite3_errstr(code);
  return absl::Status(CodeOf(db, code),
                      absl::StrCat(std::string(what), ": ", said,
                                   " (SQLite's error ", code, ")"));
}

absl::StatusOr<Statement> Statement::Prepare(sqlite3* db, const char* sql) {
  sqlite3_stmt* raw = nullptr;
  const int code =
      sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) {
    return SqliteError(db, code, absl::StrCat("cannot prepare `", sql, "`"));
  }
  Statement statement;
  statement.statement_.reset(raw);
  return statement;
}

void Statement::BindInt(int parameter, int64_t value) {
  sqlite3_bind_int64(statement_.get(), parameter, value);
}

void Statement::BindBytes(int parameter, std::string_view bytes) {
  // A null pointer would be NULL, not an empty blob.
  sqlite3_bind_blob64(statement_.get(), parameter,
                      bytes.empty() ? "" : bytes.data(), bytes.size(),
                      SQLITE_STATIC);
}

absl::StatusOr<bool> Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  sqlite3* const db = sqlite3_db_handle(statement_.get());
  if (code != SQLITE_DONE) {
    const absl::Status status = SqliteError(
        db, code, absl::StrCat("`", sqlite3_sql(statement_.get()), "` failed"));
    Reset();
    return status;
  }
  Reset();
  return false;
}

absl::Status Statement::Run() {
  for (;;) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool has_row, Step());
    if (!has_row) return absl::OkStatus();
  }
}

void Statement::Reset() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

int64_t Statement::Int(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view Statement::Bytes(int column) const {
  // The order matters: the size is that of what the first call gave.
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const char*>(data), static_cast<size_t>(size)};
}

absl::StatusOr<Connection> Connection::Open(const std::string& path, Mode mode,
                                            const std::string& vfs) {
  sqlite3* raw = nullptr;
  const int flags =
      (mode == Mode::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
      SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags,
                                   vfs.empty() ? nullptr : vfs.c_str());
  Connection connection;
  connection.db_.reset(raw);
  if (code != SQLITE_OK) {
    return SqliteError(raw, code, absl::StrCat("cannot open ", path));
  }
  sqlite3_busy_timeout(raw, kBusyMillis);
  sqlite3_wal_autocheckpoint(raw, 0);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  // The size of a damaged record is refused before memory is asked for it.
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH,
                static_cast<int>(kMaxValueBytes + kMaxKeyBytes + 4096));
  return connection;
}

absl::Status Connection::Run(const char* sql) {
  const int code = sqlite3_exec(db(), sql, nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return absl::OkStatus();
  return SqliteError(db(), code, absl::StrCat("`", sql, "` failed"));
}

absl::StatusOr<int64_t> Connection::QueryInt(const char* sql) {
  PENSTOCK_ASSIGN_OR_RETURN(Statement statement, Statement::Prepare(db(), sql));
  PENSTOCK_ASSIGN_OR_RETURN(const bool has_row, statement.Step());
  return has_row ? statement.Int(0) : 0;
}

absl::StatusOr<std::string> Connection::QueryText(const char* sql) {
  PENSTOCK_ASSIGN_OR_RETURN(Statement statement, Statement::Prepare(db(), sql));
  PENSTOCK_ASSIGN_OR_RETURN(const bool has_row, statement.Step());
  return has_row ? std::string(statement.Bytes(0)) : std::string();
}

}  // namespace penstock::store
