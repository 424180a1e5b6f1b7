#include "penstock/service/worker/item_gatherer.h"

#include <algorithm>
#include <utility>

#include "penstock/base/clock.h"
#include "penstock/base/status.h"

namespace penstock::service {
namespace {

// A reader that waits is not kept waiting for more rows longer than this.
constexpr int64_t kGatherNanos = 500'000;
// Of all lanes together.
constexpr int64_t kMaxGatheredBytes = 16 * engine::kMaxChunkBytes;

}  // namespace

absl::Status ItemGatherer::Start(const RunSetup& setup,
                                 engine::Instances& instances,
                                 uint64_t position) {
  Clear();
  // The run keeps its pipeline: with it, all that it reads.
  struct Kept {
    PlanPtr plan;
    std::shared_ptr<const void> rest;
  };
  auto kept = std::make_shared<Kept>(Kept{setup.plan, setup.keep});
  std::shared_ptr<const engine::Pipeline> pipeline(kept,
                                                   setup.plan->pipeline.get());
  PENSTOCK_ASSIGN_OR_RETURN(
      bundle_,
      engine::Bundle::Start(std::move(pipeline), setup.environment, instances,
                            setup.epoch, setup.seed, setup.part,
                            static_cast<int64_t>(position)));
  plan_ = setup.plan;
  account_ = setup.account;
  is_from_start_ = position == 0;
  return absl::OkStatus();
}

void ItemGatherer::Count() {
  if (bundle_ == nullptr || account_ == nullptr) return;
  const std::shared_ptr<engine::Run> run = bundle_->run();
  const bool is_whole =
      is_from_start_ && outcome_.has_value() && outcome_->ok();
  bundle_.reset();  // streams add what they have counted when they end
  account_->Add(plan_->places, *run, is_whole);
}

void ItemGatherer::Clear() {
  Count();
  bundle_.reset();
  gathered_ = ChunkBuilder();
  pieces_.clear();
  bytes_ = 0;
  next_.reset();
  outcome_.reset();
}

void ItemGatherer::Add(engine::Bundle::Items items) {
  const Chunk& chunk = items.pull.chunk;
  if (has_items() && (is_loose_ != items.is_loose || !gathered_.Fits(chunk))) {
    next_ = std::move(items);
    return;
  }
  if (!has_items()) {
    start_ns_ = SteadyClock().NowNanos();
    position_ = next_position() - static_cast<uint64_t>(chunk.rows);
    is_loose_ = items.is_loose;
  }
  bytes_ += chunk.NumBytes();
  gathered_.Append(chunk, 0, chunk.rows);
  if (lanes_ > 0) pieces_.push_back(chunk);
}

ItemGatherer::Found ItemGatherer::Gather(
    int64_t slice_start_ns, const std::atomic<bool>& is_reader_waiting,
    const engine::Waker& waker, bool may_stay) {
  if (next_.has_value()) Add(*std::exchange(next_, std::nullopt));
  const int64_t max_rows = rows_per_frame_ * frames();
  const int64_t max_bytes =
      std::min(engine::kMaxChunkBytes * frames(), kMaxGatheredBytes);
  while (gathered_.rows() < max_rows && bytes_ < max_bytes &&
         !next_.has_value() && !outcome_.has_value()) {
    const int64_t now = SteadyClock().NowNanos();
    if (has_items() && is_reader_waiting && now - start_ns_ > kGatherNanos) {
      break;
    }
    if (now - slice_start_ns > kSliceNanos) return Found::kYield;
    absl::StatusOr<engine::Bundle::Items> items = bundle_->Next(
        {std::min(max_rows - gathered_.rows(), engine::kMaxChunkRows),
         waker,
         {1, 0, may_stay}});
    if (!items.ok()) {
      outcome_ = items.status();
    } else if (items->pull.is_end()) {
      outcome_ = absl::OkStatus();
    } else if (items->pull.is_blocked()) {
      if (has_items() && is_reader_waiting) break;
      return Found::kBlocked;
    } else {
      Add(*std::move(items));
    }
  }
  // So that the last frame says that it is the last, and none follows that says
  // no more than that.
  if (has_items() && !next_ && !outcome_ && bundle_->IsOver()) {
    outcome_ = absl::OkStatus();
  }
  return Found::kItems;
}

void ItemGatherer::Grow() {
  bytes_ = 0;
  rows_per_frame_ = std::min(rows_per_frame_ * 2, engine::kMaxChunkRows);
}

Chunk ItemGatherer::Build(FrameMemory* frames) {
  Grow();
  pieces_.clear();
  return gathered_.Build(frames);
}

std::vector<Chunk> ItemGatherer::TakePieces() {
  Grow();
  gathered_ = ChunkBuilder();
  return std::exchange(pieces_, {});
}

}  // namespace penstock::service
