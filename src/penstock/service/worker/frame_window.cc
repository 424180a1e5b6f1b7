#include "penstock/service/worker/frame_window.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace penstock::service {
namespace {

constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();

}  // namespace

void FrameWindow::Begin(uint64_t position) {
  has_begun_ = true;
  next_position_ = position;
}

void FrameWindow::Add(std::vector<OutFrame> frames) {
  next_position_ = frames.front().end();
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    OutFrame frame = frames.size() == 1 ? frames[0] : std::move(frames[i]);
    const auto bytes = static_cast<int64_t>(frame.bytes);
    lane.frames.push_back({std::move(frame), lane.bytes});
    lane.bytes += bytes;
  }
}

void FrameWindow::End(uint64_t digest) {
  end_.emplace();
  end_->position = next_position_;
  end_->is_end = true;
  end_->digest = digest;
}

void FrameWindow::AddReader(uint64_t reader, size_t lane, uint64_t from) {
  readers_[reader] = {.lane = lane, .next = from};
}

void FrameWindow::RemoveReader(uint64_t reader) {
  readers_.erase(reader);
  DropSpilled();
}

void FrameWindow::Seek(uint64_t reader, uint64_t from) {
  Reader& it = readers_.at(reader);
  it.next = from;
  it.has_end = false;
}

void FrameWindow::SetLate(uint64_t reader, bool is_late) {
  readers_.at(reader).is_late = is_late;
}

uint64_t FrameWindow::least_wanted() const {
  uint64_t least = kAll;
  for (const auto& [id, reader] : readers_)
    least = std::min(least, reader.next);
  return least == kAll ? 0 : least;
}

std::deque<FrameWindow::Held>::const_iterator FrameWindow::FirstAfter(
    const Lane& lane, uint64_t position) {
  return std::ranges::partition_point(lane.frames, [&](const Held& held) {
    return held.frame.end() <= position;
  });
}

bool FrameWindow::Covers(size_t lane, uint64_t from) const {
  if (!has_begun_) return true;
  const auto found = FirstAfter(lanes_[lane], from);
  return (found == lanes_[lane].frames.end() ? next_position_
                                             : found->frame.position) <= from;
}

bool FrameWindow::HasMore(uint64_t reader) const {
  const Reader& it = readers_.at(reader);
  const Lane& lane = lanes_[it.lane];
  return FirstAfter(lane, it.next) != lane.frames.end() ||
         (end_.has_value() && !it.has_end);
}

bool FrameWindow::is_driven() const {
  return std::ranges::any_of(readers_, [](const auto& each) {
    return !each.second.is_late && !each.second.has_end;
  });
}

FrameWindow::Taken FrameWindow::Take(uint64_t id) {
  Reader& reader = readers_.at(id);
  Lane& lane = lanes_[reader.lane];
  const auto found = FirstAfter(lane, reader.next);
  Taken taken;
  const bool is_here = found != lane.frames.end();
  const uint64_t first = is_here ? found->frame.position : next_position_;
  if (first > reader.next) {
    taken.is_missing = policy_ == Policy::kWait;
    if (taken.is_missing) return taken;
  }
  if (!is_here && !end_.has_value()) return taken;
  if (first > reader.next) taken.skipped = first - reader.next;
  taken.frame = is_here ? found->frame : *end_;
  taken.was_had = is_here && taken.frame->end() <= lane.had;
  if (end_.has_value() && taken.frame->end() == end_->position) {
    taken.frame->is_end = true;
    taken.frame->digest = end_->digest;
    reader.has_end = true;
  }
  reader.next = std::max(reader.next, taken.frame->end());
  lane.had = std::max(lane.had, reader.next);
  if (lane.spilled > 0) DropSpilled();
  return taken;
}

size_t FrameWindow::num_frames() const {
  size_t frames = 0;
  for (const Lane& lane : lanes_) frames += lane.frames.size();
  return frames;
}

uint64_t FrameWindow::WantedFrom(size_t lane) const {
  uint64_t from = kAll;
  for (const auto& [id, reader] : readers_) {
    if (reader.lane == lane) from = std::min(from, reader.next);
  }
  return from;
}

uint64_t FrameWindow::NeededFrom(size_t lane) const {
  uint64_t from = kAll;
  for (const auto& [id, reader] : readers_) {
    if (reader.lane != lane || reader.is_late) continue;
    from = std::min(from,
                    policy_ == Policy::kWait ? reader.next : lanes_[lane].had);
  }
  return from;
}

int64_t FrameWindow::needed_bytes() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = lanes_[i];
    const auto first = std::max(
        FirstAfter(lane, NeededFrom(i)),
        lane.frames.begin() + static_cast<std::ptrdiff_t>(lane.spilled));
    if (first != lane.frames.end()) bytes += lane.bytes - first->bytes_before;
  }
  return bytes;
}

size_t FrameWindow::needed_frames() const {
  size_t frames = 0;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = lanes_[i];
    frames += static_cast<size_t>(lane.frames.end() -
                                  FirstAfter(lane, NeededFrom(i)));
  }
  return frames;
}

std::optional<FrameWindow::Evicted> FrameWindow::Evict(Spare spare,
                                                       bool for_itself) {
  Lane* oldest = nullptr;
  uint64_t wanted_from = kAll;  // of that lane
  const bool is_fresh_kept = for_itself && !is_driven();
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    if (lane.frames.size() == lane.spilled) continue;
    const Held& held = lane.frames[lane.spilled];
    const OutFrame& frame = held.frame;
    const uint64_t wanted = WantedFrom(i);
    const uint64_t from = spare == Spare::kUnwanted ? wanted : NeededFrom(i);
    if (held.is_picked || frame.end() > from) continue;
    if (is_fresh_kept && frame.end() > lane.had) continue;
    if (oldest != nullptr &&
        oldest->frames[oldest->spilled].frame.position <= frame.position) {
      continue;
    }
    oldest = &lane;
    wanted_from = wanted;
  }
  if (oldest == nullptr) return std::nullopt;
  const auto at =
      oldest->frames.begin() + static_cast<std::ptrdiff_t>(oldest->spilled);
  Evicted evicted;
  evicted.frame = std::move(at->frame);
  evicted.was_wanted = evicted.frame.end() > wanted_from;
  oldest->frames.erase(at);
  return evicted;
}

std::vector<FrameWindow::ToSpill> FrameWindow::PickToSpill(int64_t bytes) {
  std::vector<ToSpill> picked;
  if (policy_ != Policy::kWait) return picked;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    const auto memory =
        lane.frames.begin() + static_cast<std::ptrdiff_t>(lane.spilled);
    const auto wanted =
        std::max(FirstAfter(lane, WantedFrom(i)),
                 lane.frames.cbegin() + (memory - lane.frames.begin()));
    if (wanted == lane.frames.end() || wanted->frame.end() > lane.had) continue;
    // What all have had comes before it, and goes.
    lane.frames.erase(memory, wanted);
    for (size_t at = lane.spilled; at < lane.frames.size() && bytes > 0; ++at) {
      Held& held = lane.frames[at];
      if (held.frame.end() > lane.had) break;
      held.is_picked = true;
      bytes -= static_cast<int64_t>(held.frame.bytes);
      picked.push_back({i, held.frame});
    }
  }
  return picked;
}

Owner FrameWindow::Spilled(const ToSpill& picked,
                           std::shared_ptr<const SpillFile::Piece> piece) {
  Lane& lane = lanes_[picked.lane];
  if (lane.spilled == lane.frames.size()) return nullptr;
  Held& held = lane.frames[lane.spilled];
  if (!held.is_picked || held.frame.position != picked.frame.position) {
    return nullptr;
  }
  held.is_picked = false;
  held.frame.spilled = std::move(piece);
  held.frame.data = nullptr;
  held.frame.segment = kNoSegment;
  ++lane.spilled;
  Owner memory = std::move(held.frame.memory);
  DropSpilled();
  return memory;
}

void FrameWindow::KeepUnspilled() {
  for (Lane& lane : lanes_) {
    for (Held& held : lane.frames) held.is_picked = false;
  }
}

void FrameWindow::LoseSpilled() {
  for (Lane& lane : lanes_) {
    lane.frames.erase(
        lane.frames.begin(),
        lane.frames.begin() + static_cast<std::ptrdiff_t>(lane.spilled));
    lane.spilled = 0;
  }
}

void FrameWindow::DropSpilled() {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    const uint64_t wanted = WantedFrom(i);
    while (lane.spilled > 0 && lane.frames.front().frame.end() <= wanted) {
      lane.frames.pop_front();
      --lane.spilled;
    }
  }
}

}  // namespace penstock::service
