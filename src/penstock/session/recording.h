// The snapshots of one iterator, as they were taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/base/socket.h"
#include "penstock/snapshot.pb.h"

namespace penstock::session {

// Keeps a bounded number: when there are too many, the older half is thinned
// out. A file gets all of them as they come.
class Recording final {
 public:
  explicit Recording(int64_t every_ns) : every_ns_(every_ns) {}

  // Writes them to a new file from now on.
  absl::Status Open(const std::string& path);

  int64_t next_ns() const { return next_ns_; }
  // A file that cannot be written any more is given up, with its error.
  absl::Status Add(plan::Snapshot snapshot, int64_t now_ns);
  const std::vector<plan::Snapshot>& snapshots() const { return snapshots_; }

 private:
  const int64_t every_ns_;
  int64_t next_ns_ = 0;
  std::vector<plan::Snapshot> snapshots_;
  Descriptor file_;
  bool has_head_ = false;
  std::string path_;
};

}  // namespace penstock::session
