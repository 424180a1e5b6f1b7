// What a store keeps in its SQLite file, and how to tell that it is whole.
//
//   head     one row: the format, the term and its holder, the number of the
//            last commit, and, of all records, their number, bytes and digest
//   record   key, term of the writer, crc32c, value
//
// Every commit rewrites the head. SQLite's pages have no checksums of their
// own: a page that is damaged, or older than its neighbours, shows as a record
// whose crc is wrong or as a digest that is not the sum over the records.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/service/store/sqlite_connection.h"

namespace penstock::store {

inline constexpr int64_t kFormat = 1;

struct Head {
  uint64_t term = 0;
  std::string holder;
  uint64_t sequence = 0;  // of the last commit; campaigns count as well
  uint64_t num_records = 0;
  uint64_t live_bytes = 0;  // of keys and values
  uint64_t digest = 0;

  bool operator==(const Head&) const = default;
};

// Tables and a first head, in an empty file. It is left in WAL mode.
absl::Status MakeSchema(Connection& connection, int page_bytes,
                        const Head& head);

// DataLoss if the tables are not those of MakeSchema(); FailedPrecondition if
// the file has a format that this version does not know.
absl::Status CheckSchema(Connection& connection);

// Reads and writes the head. Lives no longer than its connection.
class HeadRow final {
 public:
  static absl::StatusOr<HeadRow> Prepare(Connection& connection);

  absl::StatusOr<Head> Read();
  absl::Status Write(const Head& head);

 private:
  Statement read_;
  Statement write_;
};

struct Row {
  std::string_view key;
  std::string_view value;
  uint64_t term = 0;
  uint32_t crc = 0;
  bool is_intact = false;  // the crc is right
};

// Calls `visit` for each record whose key begins with `prefix`, in key order or
// from the last to the first. Ends early if `visit` returns an error.
absl::Status ForEachRow(Connection& connection, std::string_view prefix,
                        bool is_backward,
                        const std::function<absl::Status(const Row&)>& visit);

// DataLoss that names the record.
absl::Status DamagedRecord(std::string_view key);

// What SQLite itself finds wrong with the file, a line each.
absl::StatusOr<std::vector<std::string>> QuickCheck(Connection& connection);

// DataLoss unless the records are exactly those that `head` was written with.
// Returns the bytes that SQLite needs for them where pages are full.
absl::StatusOr<uint64_t> VerifyRecords(Connection& connection,
                                       const Head& head);

}  // namespace penstock::store
