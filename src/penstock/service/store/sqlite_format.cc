#include "penstock/service/store/sqlite_format.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/base/wire.h"
#include "penstock/service/store/meta_store.h"
#include "penstock/service/store/record_check.h"

namespace penstock::store {
namespace {

// As SQLite keeps them: CheckSchema() compares the text.
constexpr char kHeadTable[] =
    "CREATE TABLE head (id INTEGER PRIMARY KEY, format INTEGER NOT NULL, "
    "term INTEGER NOT NULL, holder BLOB NOT NULL, sequence INTEGER NOT NULL, "
    "records INTEGER NOT NULL, live_bytes INTEGER NOT NULL, "
    "digest INTEGER NOT NULL, crc INTEGER NOT NULL) STRICT";
// The value is last, so that a look at the rest need not follow it into pages
// of its own.
constexpr char kRecordTable[] =
    "CREATE TABLE record (key BLOB PRIMARY KEY, term INTEGER NOT NULL, "
    "crc INTEGER NOT NULL, value BLOB NOT NULL) STRICT, WITHOUT ROWID";

constexpr int kApplicationId = 0x50534d53;  // "PSMS", for file(1)

uint32_t CrcOf(const Head& head) {
  WireWriter writer;
  writer.Varint(kFormat);
  writer.Varint(head.term);
  writer.Bytes(head.holder);
  writer.Varint(head.sequence);
  writer.Varint(head.num_records);
  writer.Varint(head.live_bytes);
  writer.Varint(head.digest);
  return Crc32c(writer.bytes());
}

// A statement over records: what is after the prefix's first key, and before
// the first key after it.
std::string RowQuery(bool has_end, bool is_backward) {
  return absl::StrCat(
      "SELECT key, term, crc, value FROM record WHERE key >= ?1",
      has_end ? " AND key < ?2" : "", " ORDER BY key",
      is_backward ? " DESC" : "");
}

// What a record takes in a full page, and in pages of its own if it is long:
// "Cell Payload Overflow Pages" of SQLite's description of its file.
uint64_t NeededBytes(const Row& row, uint64_t page_bytes) {
  constexpr uint64_t kAround = 24;  // cell, types, term and crc
  const uint64_t num_bytes = row.key.size() + row.value.size() + kAround;
  const uint64_t max_inside = (page_bytes - 12) * 64 / 255 - 23;
  if (num_bytes <= max_inside) return num_bytes;
  const uint64_t min_inside = (page_bytes - 12) * 32 / 255 - 23;
  const uint64_t outside = num_bytes - min_inside;
  const uint64_t per_page = page_bytes - 4;
  return min_inside + (outside + per_page - 1) / per_page * page_bytes;
}

}  // namespace

absl::Status MakeSchema(Connection& connection, int page_bytes,
                        const Head& head) {
  const std::string pragmas = absl::StrCat(
      "PRAGMA page_size = ", page_bytes,
      "; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = ",
      kApplicationId, "; PRAGMA journal_mode = WAL;");
  PENSTOCK_RETURN_IF_ERROR(connection.Run(pragmas.c_str()));
  PENSTOCK_RETURN_IF_ERROR(connection.Run("BEGIN IMMEDIATE"));
  PENSTOCK_RETURN_IF_ERROR(connection.Run(kHeadTable));
  PENSTOCK_RETURN_IF_ERROR(connection.Run(kRecordTable));
  PENSTOCK_ASSIGN_OR_RETURN(HeadRow row, HeadRow::Prepare(connection));
  PENSTOCK_RETURN_IF_ERROR(row.Write(head));
  PENSTOCK_RETURN_IF_ERROR(connection.Run("COMMIT"));
  return connection.Run("PRAGMA wal_checkpoint(TRUNCATE)");
}

absl::Status CheckSchema(Connection& connection) {
  // Before all else: a newer version may have other tables.
  absl::StatusOr<int64_t> format =
      connection.QueryInt("SELECT format FROM head");
  if (!format.ok()) {
    return absl::Status(format.status().code(),
                        absl::StrCat("the store's head cannot be read: ",
                                     format.status().message()));
  }
  if (*format != kFormat) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected a store of format ", kFormat, "; found ", *format,
        ". Open it with the version of penstock that wrote it."));
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      Statement statement,
      Statement::Prepare(connection.db(),
                         "SELECT CAST(sql AS BLOB) FROM sqlite_schema "
                         "WHERE sql IS NOT NULL ORDER BY name"));
  std::vector<std::string> found;
  for (;;) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool has_row, statement.Step());
    if (!has_row) break;
    found.emplace_back(statement.Bytes(0));
  }
  if (found == std::vector<std::string>{kHeadTable, kRecordTable}) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat("expected the tables head and record as format ", kFormat,
                   " has them; found others"));
}

absl::StatusOr<HeadRow> HeadRow::Prepare(Connection& connection) {
  HeadRow row;
  PENSTOCK_ASSIGN_OR_RETURN(
      row.read_,
      Statement::Prepare(connection.db(),
                         "SELECT term, holder, sequence, records, live_bytes, "
                         "digest, crc FROM head WHERE id = 0"));
  PENSTOCK_ASSIGN_OR_RETURN(
      row.write_,
      Statement::Prepare(connection.db(),
                         "INSERT OR REPLACE INTO head VALUES (0, ?1, ?2, ?3, "
                         "?4, ?5, ?6, ?7, ?8)"));
  return row;
}

absl::StatusOr<Head> HeadRow::Read() {
  StatementEnd end(read_);
  PENSTOCK_ASSIGN_OR_RETURN(const bool has_row, read_.Step());
  if (!has_row) {
    return absl::DataLossError("expected the store's head; found none");
  }
  Head head;
  head.term = static_cast<uint64_t>(read_.Int(0));
  head.holder = std::string(read_.Bytes(1));
  head.sequence = static_cast<uint64_t>(read_.Int(2));
  head.num_records = static_cast<uint64_t>(read_.Int(3));
  head.live_bytes = static_cast<uint64_t>(read_.Int(4));
  head.digest = static_cast<uint64_t>(read_.Int(5));
  if (read_.Int(6) != CrcOf(head)) {
    return absl::DataLossError(
        "the store's head is damaged: its checksum is wrong");
  }
  return head;
}

absl::Status HeadRow::Write(const Head& head) {
  write_.BindInt(1, kFormat);
  write_.BindInt(2, static_cast<int64_t>(head.term));
  write_.BindBytes(3, head.holder);
  write_.BindInt(4, static_cast<int64_t>(head.sequence));
  write_.BindInt(5, static_cast<int64_t>(head.num_records));
  write_.BindInt(6, static_cast<int64_t>(head.live_bytes));
  write_.BindInt(7, static_cast<int64_t>(head.digest));
  write_.BindInt(8, CrcOf(head));
  return write_.Run();
}

absl::Status ForEachRow(Connection& connection, std::string_view prefix,
                        bool is_backward,
                        const std::function<absl::Status(const Row&)>& visit) {
  const std::optional<std::string> end = AfterPrefix(prefix);
  const std::string query = RowQuery(end.has_value(), is_backward);
  PENSTOCK_ASSIGN_OR_RETURN(Statement statement,
                            Statement::Prepare(connection.db(), query.c_str()));
  statement.BindBytes(1, prefix);
  if (end) statement.BindBytes(2, *end);
  for (;;) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool has_row, statement.Step());
    if (!has_row) return absl::OkStatus();
    Row row;
    row.key = statement.Bytes(0);
    row.term = static_cast<uint64_t>(statement.Int(1));
    const int64_t crc = statement.Int(2);
    row.value = statement.Bytes(3);
    row.crc = static_cast<uint32_t>(crc);
    row.is_intact = crc == RecordCrc(row.key, row.value, row.term);
    PENSTOCK_RETURN_IF_ERROR(visit(row));
  }
}

absl::Status DamagedRecord(std::string_view key) {
  return absl::DataLossError(absl::StrCat(
      "the record ", ReadableKey(key), " is damaged: its checksum is wrong"));
}

absl::StatusOr<std::vector<std::string>> QuickCheck(Connection& connection) {
  PENSTOCK_ASSIGN_OR_RETURN(
      Statement statement,
      Statement::Prepare(connection.db(), "PRAGMA quick_check(100)"));
  std::vector<std::string> problems;
  for (;;) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool has_row, statement.Step());
    if (!has_row) return problems;
    std::string line(statement.Bytes(0));
    if (line != "ok") problems.push_back(std::move(line));
  }
}

absl::StatusOr<uint64_t> VerifyRecords(Connection& connection,
                                       const Head& head) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t page_bytes,
                            connection.QueryInt("PRAGMA page_size"));
  uint64_t needed_bytes = 0;
  Head found = head;
  found.num_records = 0;
  found.live_bytes = 0;
  found.digest = 0;
  PENSTOCK_RETURN_IF_ERROR(
      ForEachRow(connection, "", false, [&](const Row& row) {
        if (!row.is_intact) return DamagedRecord(row.key);
        ++found.num_records;
        found.live_bytes += row.key.size() + row.value.size();
        needed_bytes += NeededBytes(row, static_cast<uint64_t>(page_bytes));
        found.digest += DigestOf(row.key, row.crc);
        return absl::OkStatus();
      }));
  if (found.num_records != head.num_records) {
    return absl::DataLossError(absl::StrCat(
        "expected ", head.num_records, " records; found ", found.num_records));
  }
  if (found == head) return needed_bytes;
  return absl::DataLossError(
      "the records are not those of the last commit: their digest is wrong");
}

}  // namespace penstock::store
