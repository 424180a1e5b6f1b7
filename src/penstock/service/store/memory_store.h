// A store in memory that can die, for simulations: dispatchers, and zombies of
// dispatchers, open one disk. What a store on a real disk may do, it does when
// it is told to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/service/store/meta_store.h"

namespace penstock::store {

// How a commit (or a campaign) may end.
enum class Fault {
  kErrorBefore,  // an unknown error; nothing was written
  kErrorAfter,   // an unknown error, and yet it was written
  kCrashBefore,  // the store that commits dies; nothing was written
  kCrashAfter,   // the store that commits dies; it was written
};

// What survives: it outlives the stores that open it. Thread-safe.
class MemoryDisk final {
 public:
  // The `n`-th commit or campaign from now on, of whatever store, ends with
  // `fault`; 1 is the next. Replaces what was to come.
  void FailCommit(int n, Fault fault) ABSL_LOCKS_EXCLUDED(mutex_);

  // While it is full, only deletes and campaigns pass.
  void SetFull(bool is_full) ABSL_LOCKS_EXCLUDED(mutex_);

  // Commits and campaigns that were written.
  uint64_t num_commits() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class MemoryStore;

  mutable Mutex mutex_;
  std::map<std::string, std::string> records_ ABSL_GUARDED_BY(mutex_);
  uint64_t term_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t num_commits_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_full_ ABSL_GUARDED_BY(mutex_) = false;
  int commits_to_fault_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Fault> fault_ ABSL_GUARDED_BY(mutex_);
};

class MemoryStore final : public MetaStore {
 public:
  explicit MemoryStore(std::shared_ptr<MemoryDisk> disk);

  // The process dies: all that follows fails, and the disk stays as the last
  // commit left it. Another store may open it.
  void Crash();

  absl::StatusOr<uint64_t> Campaign(std::string_view holder) override;
  absl::Status Commit(const WriteBatch& batch, uint64_t term) override;
  absl::StatusOr<std::vector<Record>> Scan(std::string_view prefix) override;

 private:
  // The fault of this commit, if it is its turn.
  std::optional<Fault> NextFault() ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_->mutex_);
  // What the caller sees of `fault`. The store is of no use afterwards.
  absl::Status Fail(Fault fault) ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_->mutex_);

  const std::shared_ptr<MemoryDisk> disk_;
  absl::Status broken_ ABSL_GUARDED_BY(disk_->mutex_);
};

}  // namespace penstock::store
