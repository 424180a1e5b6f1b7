// A connection to SQLite and its statements, with Status for what goes wrong.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::store {

// How long a lock of another process is waited for.
inline constexpr int kBusyMillis = 5000;

// What the last error of `db` means:
//
//   ResourceExhausted  no space for a write, for whatever reason; never of a
//                      failed fsync, after which nothing is known
//   DataLoss           the file is not what SQLite wrote
//   Unavailable        another process holds a lock for too long
//   PermissionDenied   the file may not be opened or written
//   Internal           input or output failed, or anything else
absl::Status SqliteError(sqlite3* db, int code, std::string_view what);

// A prepared statement. One thread at a time.
class Statement final {
 public:
  Statement() = default;

  // `db` outlives the statement.
  static absl::StatusOr<Statement> Prepare(sqlite3* db, const char* sql);

  // Parameters count from 1. Bytes are not copied: they must live until Reset()
  // or the end of Run().
  void BindInt(int parameter, int64_t value);
  void BindBytes(int parameter, std::string_view bytes);

  // True if there is a row; false at the end, after which it is as Reset().
  absl::StatusOr<bool> Step();
  // Steps to the end; ready to be used again.
  absl::Status Run();
  void Reset();

  // Columns of the row, from 0. What is of another type gives 0 or no bytes:
  // files may be damaged, and checksums tell. Views last until the next Step().
  int64_t Int(int column) const;
  std::string_view Bytes(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const {
      sqlite3_finalize(statement);
    }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// Ends with Reset() where a function ends early.
class StatementEnd final {
 public:
  explicit StatementEnd(Statement& statement) : statement_(statement) {}
  ~StatementEnd() { statement_.Reset(); }
  StatementEnd(const StatementEnd&) = delete;
  StatementEnd& operator=(const StatementEnd&) = delete;

 private:
  Statement& statement_;
};

class Connection final {
 public:
  enum class Mode { kRead, kWrite };

  Connection() = default;

  // Opens a file that exists. `vfs` is SQLite's name of one; empty: its own.
  // No checkpoint is made when it closes, and none by itself.
  static absl::StatusOr<Connection> Open(const std::string& path, Mode mode,
                                         const std::string& vfs);

  sqlite3* db() const { return db_.get(); }

  // Runs statements that take no parameters.
  absl::Status Run(const char* sql);
  // The first column of the first row.
  absl::StatusOr<int64_t> QueryInt(const char* sql);
  absl::StatusOr<std::string> QueryText(const char* sql);

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  std::unique_ptr<sqlite3, Close> db_;
};

}  // namespace penstock::store
