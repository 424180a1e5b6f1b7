// Many small commits as few: a queue in front of a store.
//
// Durability costs an fsync, whatever is written. Batches that come while one
// group is being written wait for the next, which writes them all at once; and
// a group waits a little for those that are likely to come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "penstock/base/clock.h"
#include "penstock/base/mutex.h"
#include "penstock/service/store/meta_store.h"

namespace penstock::store {

struct GroupCommitOptions {
  // The longest that a batch waits for others. A group that is as large as the
  // callers of late can make it waits no longer.
  int64_t max_wait_ns = 2'000'000;
  // The longest that a lazy batch waits for a group to ride along with.
  int64_t max_lazy_wait_ns = 100'000'000;
  // A group has at most this many batches and, but for the first, bytes.
  size_t max_group_batches = 256;
  size_t max_group_bytes = size_t{16} << 20;
  // Beyond this, batches are refused.
  size_t max_queued_bytes = size_t{256} << 20;
};

// Thread-safe.
//
// Batches become durable in the order in which they were queued, whether lazy
// or not: after a crash, what is there is a prefix of them. Each is written
// whole or not at all. Callbacks come in the same order, one at a time, without
// a lock held: they may queue more, but must not Flush().
//
// A batch that the store refuses (ResourceExhausted, InvalidArgument) fails
// alone. After Aborted or an error that leaves open what was written, that
// batch, all that are queued, and all that come fail with it: nothing is
// written after it.
class GroupCommit final {
 public:
  using Callback = std::function<void(const absl::Status&)>;

  // `store` and `clock` outlive it. Without Start(), batches are written by
  // Poll() and Flush(), as a simulation needs.
  GroupCommit(MetaStore& store, const Clock& clock,
              const GroupCommitOptions& options = {});

  // What is still queued fails with Cancelled.
  ~GroupCommit();
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;

  // From here on a thread of its own writes what is due.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);

  // Queues `batch`; `done` hears when it is durable, or why it is not. If the
  // queue has failed or is full, it hears so before this returns.
  void Commit(WriteBatch batch, uint64_t term, Callback done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for what need not be durable soon.
  void CommitLazily(WriteBatch batch, uint64_t term, Callback done)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The time at which the next group is due, by the clock; none if nothing is
  // queued.
  std::optional<int64_t> DueNanos() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes a group if one is due; true if it did.
  bool Poll() ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes all that was queued before the call. Returns the error that the
  // queue failed with, if it has.
  absl::Status Flush() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    WriteBatch batch;
    uint64_t term;
    Callback done;
    size_t num_bytes;
    int64_t due_ns;
    bool is_lazy;
  };

  void Queue(WriteBatch batch, uint64_t term, Callback done, bool is_lazy)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<int64_t> Due() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes one group; the lock is not held while it does. Nobody else is
  // writing.
  void WriteGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Entry> TakeGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The results of the entries, in order.
  std::vector<absl::Status> CommitTogether(std::vector<Entry>& group);
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);

  MetaStore& store_;
  const Clock& clock_;
  const GroupCommitOptions options_;
  std::thread thread_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Entry> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t num_eager_ ABSL_GUARDED_BY(mutex_) = 0;       // of the queue: not lazy
  uint64_t num_queued_ ABSL_GUARDED_BY(mutex_) = 0;    // ever
  uint64_t num_finished_ ABSL_GUARDED_BY(mutex_) = 0;  // ever, called back
  // Eager batches that the last group and those who waited for it were: as many
  // as are likely to come again.
  size_t expected_ ABSL_GUARDED_BY(mutex_) = 1;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::store
