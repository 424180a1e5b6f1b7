// Snapshots one after another, as a file has them: what a run measured, to be
// looked at later or fed to the tuner again.
//
//   "PSNP" u32 version | records
//   record:  u32 length | u64 hash of the length and the bytes | Snapshot
//
// Numbers are little-endian. A file that is cut, or damaged in one place, gives
// all that is whole before that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "penstock/snapshot.pb.h"

namespace penstock::plan {

inline constexpr size_t kSnapshotHeadBytes = 8;
// A larger record is refused before memory is given to it.
inline constexpr size_t kMaxSnapshotBytes = size_t{16} << 20;
inline constexpr size_t kMaxSnapshotLogBytes = size_t{1} << 30;

// Appends to what is in `log`; an empty one gets its head first. A snapshot of
// more than kMaxSnapshotBytes is ResourceExhausted and changes nothing.
absl::Status AppendSnapshot(const Snapshot& snapshot, std::string& log);

struct SnapshotLog {
  std::vector<Snapshot> snapshots;  // all before the first that is not whole
  // OK, or DataLoss with the offset at which the rest could not be read.
  absl::Status status;
};
SnapshotLog ParseSnapshotLog(std::string_view log);

// The same with files. Writing replaces the file as a whole.
absl::Status WriteSnapshotFile(const std::string& path,
                               const std::vector<Snapshot>& snapshots);
SnapshotLog ReadSnapshotFile(const std::string& path);

}  // namespace penstock::plan
