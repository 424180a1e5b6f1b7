// A bundle that this worker computes, and its frames until somebody has them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/data/frame_memory.h"
#include "penstock/engine/executor.h"
#include "penstock/service/worker/item_digest.h"
#include "penstock/service/worker/item_gatherer.h"
#include "penstock/service/worker/out_frame.h"
#include "penstock/service/worker/output_budget.h"

namespace penstock::service {

// A task on the executor. It computes frames (ItemGatherer) ahead of its
// reader, as far as the budget goes; one frame it may always have. Frames that
// were taken are forgotten: a reading that begins before what is left has the
// bundle computed again from there.
//
// Errors of single rows are rows. What ends the bundle is what its reader gets
// after the frames before it; the next reading tries again, unless it was never
// begun. Thread-safe.
class BundleRun final : public engine::Task, public FrameSource {
 public:
  using Setup = RunSetup;
  struct Options {
    std::shared_ptr<FrameMemory> memory;
    engine::Instances* instances = nullptr;
    // Called without locks, by any thread: all of it was computed, or it has
    // failed.
    std::function<void()> on_computed;
    // It waits for its reader, or for rows of another job, or does not any
    // more. What computes those may be this worker.
    std::function<void(bool is_stalled)> on_stalled;
  };

  BundleRun(engine::Executor* executor, Options options);

  // Has it counted in `budget`, and computed once it has begun.
  void Charge(OutputBudget& budget) ABSL_LOCKS_EXCLUDED(mutex_);
  void Begin(absl::StatusOr<Setup> setup) ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);

  void Attach(const engine::Waker& reader, uint64_t from,
              bool takes_parts) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::optional<OutFrame>> Take(
      const engine::Waker& reader) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Check(const engine::Waker& reader) const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Detach(const engine::Waker& reader) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_read() const override ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_taken() const override ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_closed() const override ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_computed() const ABSL_LOCKS_EXCLUDED(mutex_);

 protected:
  Next RunSlice() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Made { kYes, kNoRoom, kFailed };

  // Makes a frame of what was gathered and puts it into the queue.
  Made Emit() ABSL_LOCKS_EXCLUDED(mutex_);
  // The memory of the frame in `load_`.
  Made FillLoad(bool is_alone) ABSL_LOCKS_EXCLUDED(mutex_);
  void Fail(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void Clear();
  void SetStalled(bool is_stalled);
  absl::Status CheckLocked(const engine::Waker& reader) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RestartAt(uint64_t position) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;

  // Touched by the task alone.
  ItemGatherer items_;
  std::optional<OutFrame> load_;  // made, but for its memory
  Chunk load_chunk_;
  BlockSums load_sums_;
  ItemDigest digest_;
  bool needs_lineage_ = false;
  bool receives_ = false;  // other jobs' rows
  bool is_stalled_ = false;

  std::atomic<bool> is_reader_waiting_{false};
  std::atomic<bool> takes_parts_{false};  // who reads it
  mutable Mutex mutex_;
  std::unique_ptr<OutputBudget::Account> account_ ABSL_GUARDED_BY(mutex_);
  std::optional<Setup> setup_ ABSL_GUARDED_BY(mutex_);
  std::deque<OutFrame> frames_ ABSL_GUARDED_BY(mutex_);
  // Where the bundle is to be begun, before anything else is done.
  std::optional<uint64_t> restart_at_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_position_ ABSL_GUARDED_BY(mutex_) = 0;  // after all frames
  uint64_t wanted_from_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<OutFrame> end_ ABSL_GUARDED_BY(mutex_);  // without items
  std::optional<absl::Status> failure_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mutex_);
  std::weak_ptr<engine::Wakeable> reader_ ABSL_GUARDED_BY(mutex_);
  bool is_taken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock::service
