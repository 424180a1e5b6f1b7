#include "penstock/data/frame_memory.h"

#include <cstring>
#include <optional>
#include <utility>

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

absl::StatusOr<Frame> FrameMemory::Make(const Chunk& chunk,
                                        std::string_view trailer,
                                        bool may_exceed) {
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
  frame.offset = region.offset;
  frame.trailer_offset = region.offset + frame.chunk_bytes;
  return frame;
}

}  // namespace penstock
