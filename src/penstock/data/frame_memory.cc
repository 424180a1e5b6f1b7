#include "penstock/data/frame_memory.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/align.h"
#include "penstock/data/encode.h"

namespace penstock {

std::shared_ptr<FrameMemory> FrameMemory::Make(size_t limit_bytes) {
  return std::shared_ptr<FrameMemory>(new FrameMemory(limit_bytes));
}

Owner FrameMemory::Own(const Arena::Region& region) {
  return Owner(region.data, [self = shared_from_this(), region](const void*) {
    {
      MutexLock lock(&self->mutex_);
      self->slabs_.erase(region.data);
    }
    self->arena_.Free(region);
  });
}

std::vector<Buffer> FrameMemory::Reserve(
    absl::Span<const size_t> column_bytes) {
  const size_t begin = RoundUp(EncodedHeadSize(column_bytes.size()));
  size_t end = begin;
  for (const size_t bytes : column_bytes) end += RoundUp(bytes);
  // For other columns, errors and the trailer.
  const size_t rest = 4096 + end / 64;
  absl::StatusOr<Arena::Region> region = absl::OutOfRangeError("");
  {
    MutexLock lock(&mutex_);
    if (is_retired_) return {};
    region = arena_.Allocate(end + rest);
    if (!region.ok()) return {};
    slabs_[region->data] = Slab{*region, end};
  }
  const Owner owner = Own(*region);
  std::vector<Buffer> columns;
  const std::byte* at = region->data + begin;
  for (const size_t bytes : column_bytes) {
    columns.emplace_back(owner, at, bytes);
    at += RoundUp(bytes);
  }
  return columns;
}

void FrameMemory::Retire() {
  MutexLock lock(&mutex_);
  is_retired_ = true;
}

bool FrameMemory::Claim(const Chunk& chunk, Slab& slab, Owner& owner) {
  MutexLock lock(&mutex_);
  if (slabs_.empty()) return false;
  for (const Column& column : chunk.columns) {
    if (!column.is_dense() || column.dtype() == DType::kString) continue;
    auto at = slabs_.upper_bound(column.values().data());
    if (at == slabs_.begin()) continue;
    Slab& found = std::prev(at)->second;
    if (column.values().data() >= found.region.data + found.values_end ||
        found.is_used) {
      continue;
    }
    // Of a slab that is mostly something else's, a copy takes less memory.
    if (column.values().size() * 2 < found.values_end) continue;
    found.is_used = true;
    slab = found;
    owner = column.values().owner();
    return true;
  }
  return false;
}

uint32_t FrameMemory::Adopt(const std::byte* data, size_t size, int fd,
                            std::weak_ptr<Lender> lender) {
  MutexLock lock(&mutex_);
  lent_[next_lent_] = Lent{data, size, fd, std::move(lender)};
  return next_lent_++;
}

void FrameMemory::Disown(uint32_t segment) {
  MutexLock lock(&mutex_);
  lent_.erase(segment);
}

absl::StatusOr<FrameMemory::Segment> FrameMemory::Find(uint32_t segment) const {
  if (segment < kFirstLentSegment) {
    PENSTOCK_ASSIGN_OR_RETURN(const Arena::SegmentInfo info,
                              arena_.Segment(segment));
    return Segment{info.size, {info.fd}, nullptr};
  }
  MutexLock lock(&mutex_);
  const auto found = lent_.find(segment);
  if (found != lent_.end()) {
    if (std::shared_ptr<Lender> lender = found->second.lender.lock()) {
      return Segment{
          found->second.size, {found->second.fd, lender->connection()}, lender};
    }
  }
  return absl::NotFoundError(absl::StrCat("no segment ", segment));
}

std::optional<Frame> FrameMemory::MakeOfLent(const Chunk& chunk) {
  if (chunk.columns.empty() || !chunk.columns[0].is_dense()) {
    return std::nullopt;
  }
  // Of a string column it points elsewhere, and nothing is found.
  const Owner& owner = chunk.columns[0].values().owner();
  const auto* at = static_cast<const std::byte*>(owner.get());
  Frame frame;
  std::shared_ptr<Lender> lender;
  size_t room = 0;
  {
    MutexLock lock(&mutex_);
    for (const auto& [number, lent] : lent_) {
      if (at < lent.data || at >= lent.data + lent.size) continue;
      frame.segment = number;
      frame.offset = static_cast<uint64_t>(at - lent.data);
      room = lent.size - frame.offset;
      lender = lent.lender.lock();
    }
  }
  if (lender == nullptr) return std::nullopt;
  const std::optional<size_t> bytes = FindEncoded(chunk, at, room);
  if (!bytes.has_value()) return std::nullopt;
  frame.chunk_bytes = *bytes;
  frame.memory =
      Owner(at, [self = shared_from_this(), lender, owner, at](const void*) {
        bool is_retired;
        {
          MutexLock lock(&self->mutex_);
          is_retired = self->is_retired_;
        }
        // Nobody hears any more when the trainer lets go of it.
        if (is_retired) lender->Keep(at);
      });
  return frame;
}

absl::StatusOr<Frame> FrameMemory::Make(const Chunk& chunk,
                                        std::string_view trailer,
                                        bool may_exceed) {
  if (std::optional<Frame> lent = MakeOfLent(chunk)) {
    PENSTOCK_ASSIGN_OR_RETURN(
        const Arena::Region region,
        arena_.Allocate(std::max<size_t>(1, trailer.size()), may_exceed));
    std::copy(trailer.begin(), trailer.end(),
              reinterpret_cast<char*>(region.data));
    lent->trailer_segment = region.segment;
    lent->trailer_offset = region.offset;
    lent->memory = Owner(lent->memory.get(),
                         [chunk_memory = lent->memory,
                          trailer_memory = Own(region)](const void*) {});
    return *std::move(lent);
  }
  Frame frame;
  Arena::Region region;
  Slab slab;
  if (Claim(chunk, slab, frame.memory)) {
    const std::optional<size_t> bytes =
        EncodeAround(chunk, slab.region.data, slab.values_end,
                     slab.region.size - trailer.size());
    if (bytes.has_value()) {
      region = slab.region;
      frame.chunk_bytes = *bytes;
    }
  }
  if (region.data == nullptr) {
    frame.chunk_bytes = EncodedSize(chunk);
    PENSTOCK_ASSIGN_OR_RETURN(
        region,
        arena_.Allocate(frame.chunk_bytes + trailer.size(), may_exceed));
    frame.memory = Own(region);
    Encode(chunk, region.data);
  }
  if (!trailer.empty()) {
    std::memcpy(region.data + frame.chunk_bytes, trailer.data(),
                trailer.size());
  }
  frame.segment = region.segment;
  frame.trailer_segment = region.segment;
  frame.offset = region.offset;
  frame.trailer_offset = region.offset + frame.chunk_bytes;
  return frame;
}

}  // namespace penstock
