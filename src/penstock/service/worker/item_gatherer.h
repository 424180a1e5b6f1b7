// Items of a bundle as they are computed, gathered into what is worth a frame.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/frame_memory.h"
#include "penstock/engine/bundle.h"
#include "penstock/service/worker/plan_store.h"
#include "penstock/service/worker/work_ledger.h"

namespace penstock::service {

// How long a slice of a run may take.
inline constexpr int64_t kSliceNanos = 2'000'000;

// What is to be run.
struct RunSetup {
  PlanPtr plan;
  engine::RunPart part;
  uint64_t epoch = 0;
  uint64_t seed = 0;
  // Where, with everything set. What it points to outlives the executor, or is
  // kept by `plan` or `keep`.
  engine::Environment environment;
  std::shared_ptr<const void> keep;
  // Where it is counted; null: nowhere.
  std::shared_ptr<WorkLedger::Account> account;
};

// Small rows are gathered up to about 1 MiB, but a reader that waits gets what
// is ready within half a millisecond. Not thread-safe.
class ItemGatherer final {
 public:
  enum class Found { kItems, kBlocked, kYield };

  // `lanes`: what is gathered becomes so many frames at once, and is taken as
  // pieces. 0: one frame, which is built.
  explicit ItemGatherer(int64_t lanes = 0) : lanes_(lanes) {}

  // Begins at the item at `position`.
  absl::Status Start(const RunSetup& setup, engine::Instances& instances,
                     uint64_t position);
  // Forgets everything, and frees the run.
  void Clear();

  // Pulls until there is something to make a frame of, or to end with.
  // `may_stay`: frames can be made of rows wherever they lie.
  Found Gather(int64_t slice_start_ns,
               const std::atomic<bool>& is_reader_waiting,
               const engine::Waker& waker, bool may_stay = false);

  // What was gathered: rows of one kind.
  bool has_items() const { return gathered_.rows() > 0; }
  uint64_t position() const { return position_; }
  bool is_loose() const { return is_loose_; }
  // Nothing comes after it: OK, the end.
  const std::optional<absl::Status>& outcome() const { return outcome_; }
  bool is_last() const {
    return outcome_.has_value() && outcome_->ok() && !next_.has_value();
  }
  // Takes it, as one chunk or (lanes) as the chunks that came.
  Chunk Build(FrameMemory* frames);
  std::vector<Chunk> TakePieces();

  // Of the next item that is pulled. REQUIRES: started.
  uint64_t next_position() const {
    return static_cast<uint64_t>(bundle_->position());
  }

 private:
  void Add(engine::Bundle::Items items);
  void Count();
  void Grow();
  int64_t frames() const { return lanes_ == 0 ? 1 : lanes_; }

  const int64_t lanes_;
  std::unique_ptr<engine::Bundle> bundle_;
  PlanPtr plan_;
  std::shared_ptr<WorkLedger::Account> account_;
  bool is_from_start_ = false;
  ChunkBuilder gathered_;
  std::vector<Chunk> pieces_;  // lanes: what was gathered
  int64_t bytes_ = 0;
  int64_t start_ns_ = 0;
  uint64_t position_ = 0;
  bool is_loose_ = false;
  int64_t rows_per_frame_ = 1;
  std::optional<engine::Bundle::Items> next_;  // came after what was gathered
  std::optional<absl::Status> outcome_;        // after all that
};

}  // namespace penstock::service
