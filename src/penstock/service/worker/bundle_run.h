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
#include "penstock/data/builder.h"
#include "penstock/data/frame_memory.h"
#include "penstock/engine/bundle.h"
#include "penstock/engine/executor.h"
#include "penstock/service/worker/item_digest.h"
#include "penstock/service/worker/output_budget.h"
#include "penstock/service/worker/plan_store.h"

namespace penstock::service {

// Some items of a bundle, in shared memory: an encoded chunk, and after it the
// items' lineages, if the division needs them. The frame that ends a bundle may
// have no items and no bytes.
struct OutFrame {
  uint64_t position = 0;
  uint64_t items = 0;
  bool is_loose = false;
  bool is_end = false;
  uint64_t digest = 0;  // is_end: ItemDigest::Get()
  Owner memory;         // keeps `data`
  const std::byte* data = nullptr;
  size_t bytes = 0;
  size_t chunk_bytes = 0;  // of them
  uint32_t segment = 0;
  uint64_t offset = 0;  // in the segment

  uint64_t end() const { return position + items; }
};

// A task on the executor. It computes frames ahead of its reader, as far as the
// budget goes; one frame it may always have. Small rows are gathered into
// frames of about 1 MiB, but a reader that waits gets what is ready within half
// a millisecond. Frames that were taken are forgotten: a reading that begins
// before what is left has the bundle computed again from there.
//
// Errors of single rows are rows. What ends the bundle is what its reader gets
// after the frames before it; the next reading tries again, unless it was never
// begun.
//
// Thread-safe. It has one reader at a time; a new one takes the place of the
// one before, which is told so.
class BundleRun final : public engine::Task {
 public:
  // What is to be run.
  struct Setup {
    PlanPtr plan;
    engine::RunPart part;
    uint64_t epoch = 0;
    uint64_t seed = 0;
    // Where, with everything set. What it points to outlives the executor, or
    // is kept by `plan` or `keep`.
    engine::Environment environment;
    std::shared_ptr<const void> keep;
  };
  struct Options {
    std::shared_ptr<FrameMemory> memory;
    engine::Instances* instances = nullptr;
    // Called without locks, by any thread: all of it was computed, or it has
    // failed.
    std::function<void()> on_computed;
    // It waits for its reader, or does not any more.
    std::function<void(bool is_stalled)> on_stalled;
  };

  BundleRun(engine::Executor* executor, Options options);

  // Has it counted in `budget`, and computed once it has begun.
  void Charge(OutputBudget& budget) ABSL_LOCKS_EXCLUDED(mutex_);
  void Begin(absl::StatusOr<Setup> setup) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends it: readers hear `why`.
  void Close(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // `reader` is woken whenever Take() may have more to say. Frames come from
  // the one on that has the item at `from`.
  void Attach(const engine::Waker& reader, uint64_t from)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The next frame; nullopt: not yet. After a frame with is_end there is none.
  // Aborted for a reader that was replaced.
  absl::StatusOr<std::optional<OutFrame>> Take(const engine::Waker& reader)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What Take() would say of a reader that gets no more frames; else OK.
  absl::Status Check(const engine::Waker& reader) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Detach(const engine::Waker& reader) ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_read() const ABSL_LOCKS_EXCLUDED(mutex_);
  // It was computed to its end, and a reader has all of it.
  bool is_taken() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_computed() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_closed() const ABSL_LOCKS_EXCLUDED(mutex_);

 protected:
  Next RunSlice() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Gathered { kFrame, kBlocked, kYield };
  enum class Made { kYes, kNoRoom, kFailed };

  // Pulls until there is something to make a frame of, or to end with.
  Gathered Gather(int64_t slice_start);
  void AddPulled(engine::Bundle::Items items);
  bool HasRows() const { return gathered_.rows() > 0; }
  // Makes a frame of what was gathered and puts it into the queue.
  Made Emit() ABSL_LOCKS_EXCLUDED(mutex_);
  void Fail(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status StartAt(const Setup& setup, uint64_t position);
  void Clear();
  void SetStalled(bool is_stalled);
  absl::Status CheckLocked(const engine::Waker& reader) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RestartAt(uint64_t position) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;

  // Touched by the task alone.
  std::unique_ptr<engine::Bundle> bundle_;
  ChunkBuilder gathered_;
  int64_t gathered_bytes_ = 0;
  int64_t gather_start_ns_ = 0;
  uint64_t gathered_position_ = 0;
  bool is_gathered_loose_ = false;
  std::optional<engine::Bundle::Items> next_;  // came after what was gathered
  std::optional<absl::Status> outcome_;        // after all that: OK, the end
  std::optional<OutFrame> load_;               // made, but for its memory
  Chunk load_chunk_;
  ItemDigest digest_;
  int64_t rows_per_frame_ = 1;
  bool needs_lineage_ = false;
  bool is_stalled_ = false;

  std::atomic<bool> is_reader_waiting_{false};
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
