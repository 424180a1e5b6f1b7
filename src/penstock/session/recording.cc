#include "penstock/session/recording.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/snapshot_log.h"

namespace penstock::session {
namespace {

constexpr size_t kMaxSnapshots = 512;

}  // namespace

absl::Status Recording::Open(const std::string& path) {
  file_ = Descriptor(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  path_ = path;
  if (file_.is_open()) return absl::OkStatus();
  return absl::ErrnoToStatus(errno,
                             absl::StrCat("cannot write the trace to ", path));
}

absl::Status Recording::Add(plan::Snapshot snapshot, int64_t now_ns) {
  next_ns_ = now_ns + every_ns_;
  absl::Status status;
  if (file_.is_open()) {
    std::string log;
    PENSTOCK_RETURN_IF_ERROR(plan::AppendSnapshot(snapshot, log));
    if (std::exchange(has_head_, true)) log.erase(0, plan::kSnapshotHeadBytes);
    size_t written = 0;
    while (written < log.size() && status.ok()) {
      const ssize_t n =
          write(file_.get(), log.data() + written, log.size() - written);
      if (n >= 0) {
        written += static_cast<size_t>(n);
      } else if (errno != EINTR) {
        status = absl::ErrnoToStatus(
            errno, absl::StrCat("cannot write the trace to ", path_));
        file_ = Descriptor();
      }
    }
  }
  snapshots_.push_back(std::move(snapshot));
  if (snapshots_.size() > kMaxSnapshots) {
    std::vector<plan::Snapshot> kept;
    for (size_t i = 0; i < snapshots_.size(); ++i) {
      if (i % 2 == 0 || i >= kMaxSnapshots / 2) {
        kept.push_back(std::move(snapshots_[i]));
      }
    }
    snapshots_ = std::move(kept);
  }
  return status;
}

}  // namespace penstock::session
