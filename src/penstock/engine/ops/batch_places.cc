#include "penstock/engine/ops/batch_places.h"

#include <algorithm>

#include "penstock/data/copy_past_caches.h"
#include "penstock/data/dtype.h"

namespace penstock::engine {
namespace {

// 0 where it is not fixed.
size_t RowBytes(const TensorSpec& leaf) {
  if (leaf.dtype == DType::kString || !leaf.shape.is_fully_known()) return 0;
  constexpr size_t kMost = size_t{1} << 40;  // more than any memory here
  size_t bytes = ItemSize(leaf.dtype);
  for (const int64_t size : leaf.shape.ToShape()) {
    if (size > 0 && bytes > kMost / static_cast<size_t>(size)) return 0;
    bytes *= static_cast<size_t>(size);
  }
  return bytes;
}

int64_t PlaceIn(const Group& group, int64_t pending) {
  return (group.filled + pending) % group.rows;
}

}  // namespace

BatchPlaces::BatchPlaces(std::shared_ptr<FrameMemory> memory,
                         absl::Span<const TensorSpec> leaves)
    : memory_(std::move(memory)) {
  if (memory_ == nullptr) return;
  for (const TensorSpec& leaf : leaves) {
    row_bytes_.push_back(RowBytes(leaf));
    total_bytes_ += row_bytes_.back();
  }
}

void BatchPlaces::Learn(const Chunk& chunk) {
  if (memory_ == nullptr) return;
  row_bytes_.resize(chunk.columns.size());
  total_bytes_ = 0;
  for (size_t c = 0; c < chunk.columns.size(); ++c) {
    const Column& column = chunk.columns[c];
    const bool is_fixed = column.is_dense() && column.dtype() != DType::kString;
    row_bytes_[c] = is_fixed ? column.row_bytes() : 0;
    total_bytes_ += row_bytes_[c];
  }
}

bool BatchPlaces::HasPlace(const Group& group) const {
  return group.rows > 0 && total_bytes_ * group.rows >= kMinReservedBytes;
}

int64_t BatchPlaces::Limit(const Group& group, int64_t pending,
                           int64_t rows) const {
  if (!HasPlace(group)) return rows;
  return std::min(rows, group.rows - PlaceIn(group, pending));
}

Places BatchPlaces::Take(const Group& group, int64_t pending, int64_t rows) {
  if (!HasPlace(group)) return {};
  const int64_t place = PlaceIn(group, pending);
  if (place == 0) {
    std::vector<size_t> sizes;
    for (const size_t bytes : row_bytes_) sizes.push_back(bytes * group.rows);
    group_ = memory_->Reserve(sizes);
    next_ = 0;
  }
  if (place != next_ || group_.size() != row_bytes_.size()) group_.clear();
  if (group_.empty()) return {};
  Places places;
  places.may_stay = group.may_stay;
  for (size_t c = 0; c < group_.size(); ++c) {
    const size_t bytes = row_bytes_[c];
    if (group_[c].size() != bytes * group.rows) {  // rows look otherwise now
      group_.clear();
      return {};
    }
    places.push_back(group_[c].Slice(bytes * place, bytes * rows));
  }
  next_ = place + rows;
  if (next_ == group.rows) group_.clear();
  return places;
}

void MoveTo(const Places& places, Chunk& chunk) {
  if (places.may_stay) return;
  for (size_t c = 0; c < places.size() && c < chunk.columns.size(); ++c) {
    Column& column = chunk.columns[c];
    Buffer place = places[c];
    if (place.size() == 0 || !column.is_dense() ||
        column.dtype() == DType::kString ||
        column.values().size() != place.size() ||
        column.values().data() == place.data()) {
      continue;
    }
    CopyPastCaches(place.MutableAs<std::byte>(), column.values().data(),
                   place.size());
    column = Column::Dense(column.dtype(), column.shape(), column.rows(),
                           std::move(place));
  }
}

}  // namespace penstock::engine
