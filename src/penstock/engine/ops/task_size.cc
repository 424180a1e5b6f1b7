#include "penstock/engine/ops/task_size.h"

#include <algorithm>

#include "penstock/engine/stream.h"

namespace penstock::engine {
namespace {

// Work of one task, unless one row is more: others want their turn.
constexpr int64_t kMaxTaskNanos = 3'000'000;

}  // namespace

void TaskSize::Learn(int64_t rows, int64_t bytes, int64_t nanos) {
  if (rows >= rows_) {
    if (nanos < min_nanos_ / 10 && rows_ < kMaxChunkRows / 8) rows_ *= 4;
    if (nanos < min_nanos_ && rows_ < kMaxChunkRows) rows_ *= 2;
  }
  if (nanos > std::max(10 * min_nanos_, kMaxTaskNanos) && rows_ > 1) {
    rows_ /= 2;
  }
  const int64_t row_bytes = bytes / std::max<int64_t>(rows, 1);
  if (row_bytes > 0) {
    rows_ = std::clamp<int64_t>(kMaxChunkBytes / row_bytes, 1, rows_);
  }
}

}  // namespace penstock::engine
