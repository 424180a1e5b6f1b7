#include "penstock/engine/padding_stats.h"

#include <algorithm>
#include <bit>

namespace penstock::engine {
namespace {

// Classes of lengths: one for each below 2 * kSteps, then kSteps to an octave.
constexpr uint64_t kSteps = 32;
constexpr uint64_t kMaxLength = uint64_t{1} << 40;

size_t ClassOf(int64_t length) {
  const uint64_t value =
      std::min(static_cast<uint64_t>(std::max<int64_t>(0, length)), kMaxLength);
  if (value < 2 * kSteps) return value;
  // What is left of a value of an octave above, with its leading bit.
  const auto octaves = static_cast<uint64_t>(std::bit_width(value)) -
                       static_cast<uint64_t>(std::bit_width(kSteps));
  return octaves * kSteps + (value >> octaves);
}

int64_t LongestOf(size_t length_class) {
  if (length_class < 2 * kSteps) return static_cast<int64_t>(length_class);
  const uint64_t octaves = length_class / kSteps - 1;
  const uint64_t step = length_class % kSteps + kSteps;
  return static_cast<int64_t>(((step + 1) << octaves) - 1);
}

}  // namespace

void PaddingStats::AddTo(std::shared_ptr<PaddingStats> total) {
  MutexLock lock(&mutex_);
  total_ = std::move(total);
}

void PaddingStats::Add(uint64_t items, uint64_t padded_items, uint64_t shape,
                       absl::Span<const int64_t> lengths) {
  MutexLock lock(&mutex_);
  if (total_ != nullptr) total_->Add(items, padded_items, shape, lengths);
  ++counts_.batches;
  counts_.items += items;
  counts_.padded_items += padded_items;
  if (shapes_.size() < kMaxShapes) shapes_.insert(shape);
  for (int64_t length : lengths) {
    const size_t at = ClassOf(length);
    if (at >= rows_.size()) rows_.resize(at + 1);
    ++rows_[at];
  }
}

PaddingStats::Counts PaddingStats::Get() const {
  MutexLock lock(&mutex_);
  Counts counts = counts_;
  counts.shapes = shapes_.size();
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i] > 0) counts.lengths.emplace_back(LongestOf(i), rows_[i]);
  }
  return counts;
}

}  // namespace penstock::engine
