// A look at a store on the disk, and a way to keep what is whole of a damaged
// one. The store that is looked at is not changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::store {

struct CheckReport {
  uint64_t term = 0;
  std::string holder;         // of the term
  uint64_t sequence = 0;      // of the last commit that is there
  uint64_t acknowledged = 0;  // of the last one that a caller heard of
  uint64_t num_records = 0;   // whole ones
  uint64_t live_bytes = 0;    // their keys and values
  uint64_t file_bytes = 0;    // of the database and its log
  std::map<uint64_t, uint64_t> records_by_term;
  // At most kMaxDamagedKeys of them, and how many there are.
  std::vector<std::string> damaged_keys;
  uint64_t num_damaged = 0;
  // What is wrong, a sentence each, for people. Empty: nothing is.
  std::vector<std::string> problems;
};

inline constexpr size_t kMaxDamagedKeys = 1000;

// What is in the store in `directory`, which may be in use. NotFound if there
// is none; FailedPrecondition if its format is unknown. Damage is no error but
// a problem of the report.
absl::StatusOr<CheckReport> Check(const std::string& directory);

struct SalvageReport {
  uint64_t num_salvaged = 0;
  // Records whose checksums are wrong; at most kMaxDamagedKeys of their keys.
  std::vector<std::string> damaged_keys;
  uint64_t num_damaged = 0;
  // A part that cannot be read lies after and before these keys, where each is
  // known; records that were in it are lost, too.
  struct Gap {
    std::optional<std::string> after;
    std::optional<std::string> before;
  };
  std::optional<Gap> gap;
  // By the head, if that is whole: records that were in the store, and commits
  // that were acknowledged and are not in the log.
  std::optional<uint64_t> num_expected;
  uint64_t num_lost_commits = 0;
  uint64_t term = 0;  // of the new store
};

// Makes a new store in `to`, which must not be there, with all records of
// `directory` whose checksums are right, and a term as high as the highest that
// was found. FailedPrecondition if a process has the store open; DataLoss if
// nothing of it can be read.
absl::StatusOr<SalvageReport> Salvage(const std::string& directory,
                                      const std::string& to);

}  // namespace penstock::store
