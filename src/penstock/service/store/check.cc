#include "penstock/service/store/check.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/service/store/meta_store.h"
#include "penstock/service/store/record_check.h"
#include "penstock/service/store/sqlite_connection.h"
#include "penstock/service/store/sqlite_format.h"
#include "penstock/service/store/sqlite_store.h"
#include "penstock/service/store/store_files.h"

namespace penstock::store {
namespace {

// A commit of the new store has about this many bytes.
constexpr size_t kSalvageBatchBytes = 8 << 20;

absl::Status FindStore(const std::string& directory) {
  const std::optional<uint64_t> num_bytes = FileBytes(DatabasePath(directory));
  if (!num_bytes) {
    return absl::NotFoundError(
        absl::StrCat("expected a store; found no ", DatabasePath(directory)));
  }
  if (*num_bytes > 0) return absl::OkStatus();
  // SQLite would remove the log of an empty database.
  return absl::DataLossError(
      absl::StrCat("the database is empty: ", DatabasePath(directory)));
}

absl::StatusOr<Connection> OpenForReading(const std::string& directory) {
  return Connection::Open(DatabasePath(directory), Connection::Mode::kRead,
                          /*vfs=*/"");
}

void AddDamaged(std::string_view key, std::vector<std::string>& keys,
                uint64_t& num_damaged) {
  ++num_damaged;
  if (keys.size() < kMaxDamagedKeys) keys.emplace_back(key);
}

absl::StatusOr<Head> ReadHead(Connection& connection) {
  PENSTOCK_ASSIGN_OR_RETURN(HeadRow row, HeadRow::Prepare(connection));
  return row.Read();
}

// What the head says of the records, against what was found.
void CompareWithHead(const Head& head, uint64_t digest, CheckReport& report) {
  report.term = head.term;
  report.holder = head.holder;
  report.sequence = head.sequence;
  const uint64_t num_found = report.num_records + report.num_damaged;
  if (num_found != head.num_records) {
    report.problems.push_back(absl::StrCat("expected ", head.num_records,
                                           " records; found ", num_found));
  } else if (report.num_damaged == 0 && digest != head.digest) {
    report.problems.push_back(
        "the records are not those of the last commit: their digest is wrong");
  }
  if (head.sequence < report.acknowledged) {
    report.problems.push_back(absl::StrCat(
        "expected commit ", report.acknowledged,
        ", which was acknowledged; the log ends with commit ", head.sequence));
  }
}

absl::Status ReadAll(Connection& connection, CheckReport& report) {
  PENSTOCK_RETURN_IF_ERROR(CheckSchema(connection));
  // One snapshot for all that is read, should a dispatcher be writing.
  PENSTOCK_RETURN_IF_ERROR(connection.Run("BEGIN"));
  const absl::StatusOr<Head> head = ReadHead(connection);
  const absl::StatusOr<std::vector<std::string>> found = QuickCheck(connection);
  if (found.ok()) {
    report.problems.insert(report.problems.end(), found->begin(), found->end());
  } else {
    report.problems.emplace_back(found.status().message());
  }
  uint64_t digest = 0;
  const absl::Status status =
      ForEachRow(connection, "", false, [&](const Row& row) {
        if (!row.is_intact) {
          AddDamaged(row.key, report.damaged_keys, report.num_damaged);
          return absl::OkStatus();
        }
        ++report.num_records;
        ++report.records_by_term[row.term];
        report.live_bytes += row.key.size() + row.value.size();
        digest += DigestOf(row.key, row.crc);
        return absl::OkStatus();
      });
  if (report.num_damaged > 0) {
    report.problems.push_back(absl::StrCat(
        report.num_damaged, " records have wrong checksums, the first is ",
        ReadableKey(report.damaged_keys[0])));
  }
  PENSTOCK_RETURN_IF_ERROR(status);
  PENSTOCK_RETURN_IF_ERROR(head.status());
  CompareWithHead(*head, digest, report);
  return absl::OkStatus();
}

// Carries records into a store, many in a commit.
class Carrier final {
 public:
  Carrier(MetaStore& store, uint64_t term) : store_(store), term_(term) {}

  absl::Status Add(std::string_view key, std::string_view value) {
    batch_.push_back({std::string(key), std::string(value)});
    num_bytes_ += key.size() + value.size();
    return num_bytes_ < kSalvageBatchBytes ? absl::OkStatus() : Finish();
  }

  absl::Status Finish() {
    PENSTOCK_RETURN_IF_ERROR(store_.Commit(batch_, term_));
    batch_.clear();
    num_bytes_ = 0;
    return absl::OkStatus();
  }

 private:
  MetaStore& store_;
  const uint64_t term_;
  WriteBatch batch_;
  size_t num_bytes_ = 0;
};

// The highest term that anything in the file speaks of, as far as it can be
// read.
uint64_t HighestTerm(Connection& connection, const absl::StatusOr<Head>& head) {
  uint64_t term = head.ok() ? head->term : 0;
  for (const bool is_backward : {false, true}) {
    // What cannot be read is found again, and told, when records are carried.
    ForEachRow(connection, "", is_backward, [&](const Row& row) {
      if (row.is_intact) term = std::max(term, row.term);
      return absl::OkStatus();
    }).IgnoreError();
  }
  return term;
}

// Reads from the front, and, if that ends early, from the back as far as the
// place where it ended.
absl::Status CarryAll(Connection& connection, Carrier& carrier,
                      SalvageReport& report) {
  std::optional<std::string> last;  // from the front
  absl::Status carried;
  const auto carry = [&](const Row& row) {
    if (!row.is_intact) {
      AddDamaged(row.key, report.damaged_keys, report.num_damaged);
      return absl::OkStatus();
    }
    ++report.num_salvaged;
    carried = carrier.Add(row.key, row.value);
    return carried;
  };
  const absl::Status front =
      ForEachRow(connection, "", false, [&](const Row& row) {
        last = std::string(row.key);
        return carry(row);
      });
  if (front.ok()) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(carried);
  report.gap.emplace();
  report.gap->after = last;
  ForEachRow(connection, "", true, [&](const Row& row) {
    if (last && row.key <= *last) {
      return absl::AlreadyExistsError("read from the front");
    }
    report.gap->before = std::string(row.key);
    return carry(row);
  }).IgnoreError();
  return carried;
}

}  // namespace

absl::StatusOr<CheckReport> Check(const std::string& directory) {
  CheckReport report;
  // Before the database: a dispatcher that is writing only adds to it.
  report.acknowledged = Acknowledged::Read(directory);
  report.file_bytes = FileBytes(DatabasePath(directory)).value_or(0) +
                      FileBytes(WalPath(directory)).value_or(0);
  absl::Status status = FindStore(directory);
  if (status.ok()) {
    absl::StatusOr<Connection> connection = OpenForReading(directory);
    status = connection.ok() ? ReadAll(*connection, report)
                             : std::move(connection).status();
  }
  if (absl::IsDataLoss(status)) {
    report.problems.emplace_back(status.message());
    return report;
  }
  PENSTOCK_RETURN_IF_ERROR(status);
  return report;
}

absl::StatusOr<SalvageReport> Salvage(const std::string& directory,
                                      const std::string& to) {
  PENSTOCK_RETURN_IF_ERROR(FindStore(directory));
  struct stat found;
  if (stat(to.c_str(), &found) == 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("expected a directory that is not there yet; found ", to));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Descriptor lock, LockDirectory(directory));
  PENSTOCK_ASSIGN_OR_RETURN(Connection connection, OpenForReading(directory));
  PENSTOCK_RETURN_IF_ERROR(CheckSchema(connection));
  SalvageReport report;
  const absl::StatusOr<Head> head = ReadHead(connection);
  if (head.ok()) {
    report.num_expected = head->num_records;
    const uint64_t acknowledged = Acknowledged::Read(directory);
    report.num_lost_commits =
        acknowledged - std::min(acknowledged, head->sequence);
  }
  SqliteOptions options;
  options.terms_before = HighestTerm(connection, head);
  PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<MetaStore> store,
                            OpenSqliteStore(to, options));
  PENSTOCK_ASSIGN_OR_RETURN(report.term,
                            store->Campaign("penstock meta salvage"));
  Carrier carrier(*store, report.term);
  PENSTOCK_RETURN_IF_ERROR(CarryAll(connection, carrier, report));
  PENSTOCK_RETURN_IF_ERROR(carrier.Finish());
  return report;
}

}  // namespace penstock::store
