#include "penstock/service/worker/production.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/encode.h"
#include "penstock/service/worker/productions.h"

namespace penstock::service {

Production::Production(engine::Executor* executor, Options options)
    : Task(executor),
      options_(std::move(options)),
      items_(options_.lanes),
      rounds_(std::max<int64_t>(
          1, options_.split ? options_.split->lanes() : options_.lanes)),
      lanes_(options_.lanes) {}

absl::Status Production::Start(const RunSetup& setup, uint64_t position,
                               uint64_t skip) {
  Clear();
  needs_lineage_ = setup.plan->division.needs_lineage;
  receives_ = setup.plan->received != nullptr;
  position_ = position;
  skip_until_ = skip;
  digest_.BeginAt(position);
  return items_.Start(setup, *options_.instances, position);
}

void Production::Clear() {
  items_.Clear();
  rounds_.Finish();
  lanes_ = LaneBuilder(options_.lanes);
  spares_ = ChunkBuilder();
  has_finished_rounds_ = false;
  loads_.clear();
  is_last_ = false;
}

void Production::SetStalled(bool is_stalled) {
  if (is_stalled == is_stalled_) return;
  is_stalled_ = is_stalled;
  if (options_.on_stalled) options_.on_stalled(is_stalled);
}

engine::Task::Next Production::RunSlice() {
  const std::shared_ptr<Productions> owner = options_.owner.lock();
  if (owner == nullptr) return Next::kWait;
  const int64_t start = SteadyClock().NowNanos();
  const auto fail = [&](const absl::Status& why) {
    Clear();
    owner->Fail(options_.serial, why);
    if (options_.on_computed) options_.on_computed();
    return Next::kWait;
  };
  while (true) {
    const Productions::Order order = owner->Ask(options_.serial);
    if (order.what == Productions::Order::kStop) Clear();
    if (order.begin.has_value()) {
      const absl::Status started =
          Start(*order.setup, *order.begin, order.skip_until);
      if (!started.ok()) return fail(started);
    }
    SetStalled(order.what == Productions::Order::kFull);
    if (order.what != Productions::Order::kMake) return Next::kWait;
    if (loads_.empty() && !is_last_) {
      const ItemGatherer::Found found =
          items_.Gather(start, is_reader_waiting_, shared_from_this());
      if (found == ItemGatherer::Found::kBlocked) {
        if (receives_) SetStalled(true);
        return Next::kWait;
      }
      if (found == ItemGatherer::Found::kYield) return Next::kAgain;
      if (!items_.has_items() && !items_.is_last()) {
        return fail(*items_.outcome());
      }
      LoadGathered();
    }
    const Made made = Emit(*owner, order.is_alone);
    if (made == Made::kNoRoom) {
      owner->AwaitRoom(options_.serial);
      SetStalled(true);
      return Next::kWait;
    }
    if (made == Made::kFailed) {
      return fail(absl::ResourceExhaustedError(absl::StrCat(
          "an element takes ", EncodedSize(loads_.front().chunks.back()),
          " bytes of shared memory; the worker has ",
          options_.memory->arena().limit_bytes(),
          " for what several read\n  Make elements or batches smaller, or "
          "give the worker more --memory.")));
    }
    if (SteadyClock().NowNanos() - start > kSliceNanos) return Next::kAgain;
  }
}

void Production::LoadGathered() {
  is_last_ = items_.is_last();
  if (options_.lanes == 0) {
    if (!items_.has_items()) return;
    Load load;
    load.like.position = items_.position();
    load.like.is_loose = items_.is_loose();
    load.chunks.push_back(items_.Build(options_.memory.get()));
    load.like.items = static_cast<uint64_t>(load.chunks[0].rows);
    digest_.Add(load.chunks[0], load.like.position);
    loads_.push_back(std::move(load));
    return;
  }
  if (items_.has_items()) {
    uint64_t item = items_.position();
    const bool is_loose = items_.is_loose();
    if (is_loose) FinishRounds();
    ChunkBuilder loose;
    for (const Chunk& piece : items_.TakePieces()) {
      digest_.Add(piece, item);
      item += static_cast<uint64_t>(piece.rows);
      if (is_loose) {
        loose.Append(piece, 0, piece.rows);
        continue;
      }
      for (const auto& each : rounds_.Add(piece)) LoadRounds(each);
    }
    if (is_loose) LoadForAll(loose, /*is_spare=*/false);
  }
  if (is_last_) FinishRounds();
  FlushRounds();
}

void Production::LoadAsSpares(const RoundMaker::Rounds& rounds) {
  const auto count = static_cast<uint64_t>(rounds.count);
  const uint64_t before = options_.split->position();
  const uint64_t had =
      position_ < before ? std::min(before - position_, count) : 0;
  position_ += had;
  if (had == count) return;
  for (const auto& row : rounds.rows) AddSpares(*row.chunk, row.row, 1);
  if (!rounds.rows.empty()) return;
  const int64_t lanes = options_.split->lanes();
  AddSpares(*rounds.chunk, rounds.begin + static_cast<int64_t>(had) * lanes,
            static_cast<int64_t>(count - had) * lanes);
}

void Production::AddSpares(const Chunk& chunk, int64_t row, int64_t items) {
  if (!spares_.Fits(chunk)) LoadForAll(spares_, /*is_spare=*/true);
  spares_.Append(chunk, row, items);
}

void Production::LoadRounds(const RoundMaker::Rounds& rounds) {
  if (options_.split) return LoadAsSpares(rounds);
  if (!lanes_.Fits(rounds)) FlushRounds();
  const uint64_t first = position_ + static_cast<uint64_t>(lanes_.rounds());
  const auto count = static_cast<uint64_t>(rounds.count);
  const uint64_t skip =
      first < skip_until_ ? std::min(skip_until_ - first, count) : 0;
  if (skip > 0) position_ += skip;  // nothing is gathered before it
  lanes_.Add(rounds, static_cast<int64_t>(skip));
}

void Production::FlushRounds() {
  LoadForAll(spares_, /*is_spare=*/true);
  if (lanes_.rounds() == 0) return;
  Load load;
  load.like.position = position_;
  load.like.items = static_cast<uint64_t>(lanes_.rounds());
  load.chunks = lanes_.Build(options_.memory.get());
  position_ += load.like.items;
  loads_.push_back(std::move(load));
}

void Production::FinishRounds() {
  if (std::exchange(has_finished_rounds_, true)) return;
  const RoundMaker::Rest rest = rounds_.Finish();
  for (const auto& each : rest.rounds) LoadRounds(each);
  FlushRounds();
  for (const auto& row : rest.spares) AddSpares(*row.chunk, row.row, 1);
  LoadForAll(spares_, /*is_spare=*/true);
}

void Production::LoadForAll(ChunkBuilder& rows, bool is_spare) {
  const auto items = static_cast<uint64_t>(rows.rows());
  if (items == 0) return;
  Chunk chunk = rows.Build(options_.memory.get());
  const uint64_t skip =
      position_ < skip_until_ ? std::min(skip_until_ - position_, items) : 0;
  position_ += items;
  if (skip == items) return;
  Load load;
  load.like.position = position_ - items + skip;
  load.like.items = items - skip;
  load.like.is_spare = is_spare;
  load.like.is_loose = !is_spare;
  load.chunks.push_back(Slice(chunk, static_cast<int64_t>(skip),
                              static_cast<int64_t>(items - skip)));
  loads_.push_back(std::move(load));
}

bool Production::MakeFrame(Productions& owner, const Chunk& chunk,
                           bool is_alone, OutFrame& frame) {
  std::string_view lineage;
  if (needs_lineage_)
    lineage = {chunk.lineage.As<char>(), chunk.lineage.size()};
  absl::StatusOr<Frame> made =
      options_.memory->Make(chunk, lineage, /*may_exceed=*/false);
  if (!made.ok()) {
    owner.MakeRoom(static_cast<int64_t>(EncodedSize(chunk) + lineage.size()));
    made = options_.memory->Make(chunk, lineage, is_alone);
  }
  if (!made.ok()) return false;
  frame.memory = std::move(made->memory);
  frame.data = static_cast<const std::byte*>(frame.memory.get());
  frame.segment = options_.first_segment + made->segment;
  frame.offset = made->offset;
  frame.chunk_bytes = made->chunk_bytes;
  frame.bytes = made->chunk_bytes + lineage.size();
  return true;
}

Production::Made Production::Emit(Productions& owner, bool is_alone) {
  if (!loads_.empty()) {
    Load& load = loads_.front();
    while (!load.chunks.empty()) {
      // Backwards, so that chunks are freed as their frames are made.
      OutFrame frame = load.like;
      if (!MakeFrame(owner, load.chunks.back(), is_alone, frame)) {
        return is_alone ? Made::kFailed : Made::kNoRoom;
      }
      load.made.push_back(std::move(frame));
      load.chunks.pop_back();
    }
    std::ranges::reverse(load.made);
  }
  std::vector<OutFrame> frames;
  if (!loads_.empty()) {
    frames = std::move(loads_.front().made);
    loads_.pop_front();
  }
  const bool is_end = is_last_ && loads_.empty();
  if (frames.empty() && !is_end) return Made::kYes;  // all items wait
  owner.Add(options_.serial, std::move(frames),
            is_end ? std::optional(digest_.Get()) : std::nullopt);
  if (is_end) {
    Clear();
    if (options_.on_computed) options_.on_computed();
  }
  return Made::kYes;
}

}  // namespace penstock::service
