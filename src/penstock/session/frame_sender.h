// Runs an iterator and puts what it gives into frames that the trainer reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/base/socket.h"
#include "penstock/data/frame_memory.h"
#include "penstock/engine/executor.h"
#include "penstock/engine/pipeline.h"

namespace penstock::session {

struct FrameOptions {
  // Bytes of frames that were sent and not yet taken, beyond the first two
  // frames: how far the engine runs ahead of the trainer.
  int64_t run_ahead_bytes = int64_t{32} << 20;
  int64_t run_ahead_frames = 32;
  // The same where SetRunAheadRows() says how many rows that are.
  int64_t chosen_bytes = int64_t{256} << 20;
  // Rows of one frame, at most.
  int64_t max_rows = engine::kMaxChunkRows;
  // If set, no row is computed but those asked for and this many after them.
  std::optional<int64_t> exact_rows_ahead;
  // A larger element is an error in its place.
  int64_t max_element_bytes = int64_t{2} << 30;
};

// What the trainer did between rows, as it says.
struct ConsumerCounts {
  uint64_t rows = 0;    // taken
  int64_t wait_ns = 0;  // for the engine
  // Between rows; those of one frame are taken to be as long as each other.
  uint64_t gaps = 0;
  double gap_ns = 0;
  double gap_ns_squared = 0;
};

// A task on the executor. It runs while there is credit: frames that the
// trainer has taken give it back. Full memory stops it only while there are
// frames that the trainer has not taken: arrays that it keeps never do.
// Thread-safe.
class FrameSender final : public engine::Task {
 public:
  FrameSender(engine::Executor* executor,
              std::unique_ptr<engine::Iterator> iterator,
              std::shared_ptr<FrameMemory> memory, Descriptor socket,
              const FrameOptions& options);

  int fd() const { return socket_.get(); }
  const std::shared_ptr<const engine::Pipeline>& pipeline() const {
    return pipeline_;
  }
  const engine::Run& run() const { return *run_; }
  const FrameMemory& memory() const { return *memory_; }
  // Sent so far.
  uint64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  ConsumerCounts consumer() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Rows sent and not yet taken, at most, beside the other limits; 0: any.
  void SetRunAheadRows(int64_t rows) ABSL_LOCKS_EXCLUDED(mutex_);
  // Knobs may be changed while it runs.
  engine::Run& mutable_run() { return *run_; }

  // Reads the trainer's messages. Cancelled when it closed its end.
  absl::Status OnReadable() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the run; streams are freed on the executor.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);
  // The trainer may hold on to its frames.
  ~FrameSender() override { memory_->Retire(); }

 protected:
  Next RunSlice() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Sent {
    Owner memory;
    int64_t bytes;
    int64_t rows;
    uint64_t ticket = 0;  // of its state (Iterator::Seal)
    bool is_end = false;
    bool is_taken = false;
  };

  // Rows that may be computed now; 0: wait.
  int64_t Credit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What to send next: rows, or how the iterator is over.
  struct Load {
    uint32_t kind;
    Chunk chunk;
    std::string state;  // to resume from to get the chunk
    uint64_t skip = 0;  // rows to leave out after `state`
  };

  // Pulls into load_ until it is worth a frame or nothing more is ready now:
  // then load_ may stay empty.
  void Gather(int64_t credit);
  // Puts errors in the place of rows that are too large.
  Chunk WithoutLargeRows(Chunk chunk) const;
  static Load Failure(const absl::Status& status);
  void Taken(const Sent& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountGap(uint32_t gap_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What frames cost is the root's.
  engine::NodeStats& RootStats();
  // Whether load_ was put on its way: false if memory must come first.
  absl::StatusOr<bool> Send() ABSL_LOCKS_EXCLUDED(mutex_);

  const FrameOptions options_;
  const Descriptor socket_;
  const std::shared_ptr<const engine::Pipeline> pipeline_;
  const std::shared_ptr<engine::Run> run_;
  const std::shared_ptr<FrameMemory> memory_;
  // Touched by the task alone.
  std::unique_ptr<engine::Iterator> iterator_;
  int64_t rows_per_frame_ = 1;
  std::atomic<uint64_t> rows_{0};
  std::atomic<uint64_t> bytes_{0};
  std::optional<Load> load_;  // computed, not sent: no room, or not enough
  std::optional<Load> next_;  // what comes after load_, if that is known

  mutable Mutex mutex_;
  // Rows asked for less rows sent; kept if exact_rows_ahead is set.
  int64_t demand_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_started_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  // Ran as far ahead as it may: goes on when half of that was taken, so that
  // the two sides do not wake each other for every frame.
  bool is_resting_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_frame_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Sent> frames_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_taken_ ABSL_GUARDED_BY(mutex_) = 0;  // and all before it
  int64_t untaken_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t untaken_frames_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t untaken_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t run_ahead_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  ConsumerCounts consumer_ ABSL_GUARDED_BY(mutex_);
  int64_t last_frame_rows_ ABSL_GUARDED_BY(mutex_) = 0;  // of the last taken
  uint64_t taken_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string partial_;  // of a message; OnReadable() alone
};

}  // namespace penstock::session
