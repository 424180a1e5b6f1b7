#include "penstock/functions/appender.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

constexpr int64_t kMaxSlabBytes = int64_t{64} << 20;
constexpr int64_t kAlignment = 16;

}  // namespace

RowAppender::RowAppender(DType dtype, int rank, int64_t rows,
                         const EvalContext& context)
    : dtype_(dtype),
      rank_(rank),
      rows_(rows),
      context_(context),
      dims_(Buffer::Allocate(rows * rank * sizeof(int64_t))),
      pointers_(Buffer::Allocate(rows * sizeof(void*))) {}

int64_t RowAppender::BytesOf(absl::Span<const int64_t> shape) const {
  return NumItems(shape) * static_cast<int64_t>(ItemSize(dtype_));
}

std::byte* RowAppender::Begin(absl::Span<const int64_t> shape) {
  shape_.assign(shape.begin(), shape.end());
  const int64_t bytes = BytesOf(shape);
  if (is_uniform_ && row_ > 0 && shape_ != first_) is_uniform_ = false;
  if (!is_uniform_) used_ = (used_ + kAlignment - 1) / kAlignment * kAlignment;
  if (slabs_.empty() ||
      used_ + bytes > static_cast<int64_t>(slabs_.back().size())) {
    is_uniform_ = is_uniform_ && slabs_.empty();
    // Enough for the rest, if it is like this row.
    const int64_t left = rows_ - row_;
    const int64_t wanted =
        bytes > kMaxSlabBytes / left ? kMaxSlabBytes : bytes * left;
    const int64_t size = std::max(bytes, wanted);
    slabs_.push_back(slabs_.empty() ? context_.AllocateResult(size)
                                    : Buffer::Allocate(size));
    used_ = 0;
  }
  return slabs_.back().MutableAs<std::byte>() + used_;
}

void RowAppender::Commit() {
  if (row_ == 0) first_ = shape_;
  std::copy(shape_.begin(), shape_.end(),
            dims_.MutableAs<int64_t>() + row_ * rank_);
  pointers_.MutableAs<const std::byte*>()[row_] = slabs_.back().data() + used_;
  used_ += BytesOf(shape_);
  ++row_;
}

void RowAppender::Fail(EvalContext& context, absl::Status status) {
  ReportRow(context, row_, std::move(status));
  if (is_uniform_ && row_ > 0 &&
      used_ + BytesOf(first_) <= static_cast<int64_t>(slabs_.back().size())) {
    const Shape shape = first_;
    std::memset(Begin(shape), 0, BytesOf(shape));
    Commit();
    return;
  }
  is_uniform_ = false;
  std::fill_n(dims_.MutableAs<int64_t>() + row_ * rank_, rank_, 0);
  pointers_.MutableAs<const std::byte*>()[row_] = kZeroItem;
  ++row_;
}

Column RowAppender::Finish() && {
  if (is_uniform_ && rows_ > 0) {
    return Column::Dense(dtype_, first_, rows_, std::move(slabs_[0]));
  }
  Pins pins;
  for (const Buffer& slab : slabs_) pins.push_back(slab.owner());
  return Column::Ragged(dtype_, rank_, rows_, std::move(pointers_),
                        std::move(dims_), std::move(pins));
}

}  // namespace penstock::functions
