#include "penstock/functions/rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/broadcast.h"
#include "penstock/functions/promote.h"

namespace penstock::functions {

bool MayOverwrite(const Arg& arg, int64_t rows) {
  return arg.is_last_use && !arg.is_uniform && arg.column->is_dense() &&
         arg.column->rows() == rows && arg.column->pins().empty() &&
         arg.column->values().owner().use_count() == 1;
}

void AddPins(Pins& pins, const Pins& more) {
  for (const Owner& owner : more) {
    if (std::find(pins.begin(), pins.end(), owner) == pins.end()) {
      pins.push_back(owner);
    }
  }
}

Pins StringPins(absl::Span<const Arg> args) {
  Pins pins;
  for (const Arg& arg : args) {
    if (arg.column->dtype() == DType::kString) {
      AddPins(pins, arg.column->pins());
    }
  }
  return pins;
}

void ReportRow(EvalContext& context, int64_t row, absl::Status status) {
  if (context.errors == nullptr) return;
  context.errors->push_back({row, std::move(status)});
}

absl::Status CheckElementSize(absl::Span<const int64_t> shape, DType dtype) {
  int64_t bytes = static_cast<int64_t>(ItemSize(dtype));
  bool is_too_large = false;
  bool is_empty = false;
  for (int64_t dim : shape) {
    if (dim < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "negative dimensions are not allowed; got ", ToString(shape)));
    }
    is_empty = is_empty || dim == 0;
    is_too_large = is_too_large || __builtin_mul_overflow(bytes, dim, &bytes) ||
                   bytes > kMaxElementBytes;
  }
  if (!is_too_large || is_empty) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("an element may take 2 GiB; got ", Text(Name(dtype)),
                   " of shape ", ToString(shape)));
}

absl::StatusOr<int> RankFrom(const Arg& shape, int64_t rows,
                             const PartialShape& promised) {
  const Column& column = *shape.column;
  int64_t rank = 0;
  if (promised.has_rank()) {
    rank = promised.rank();
  } else if (column.is_dense()) {
    rank = NumItems(column.shape());
  } else {
    for (int64_t row = 0; row < rows; ++row) {
      rank = std::max(rank, column.RowItems(RowIndex(shape, row)));
    }
  }
  if (rank <= kMaxRank) return static_cast<int>(rank);
  return absl::InvalidArgumentError(
      absl::StrCat("a value may have ", kMaxRank, " dimensions; got ", rank));
}

absl::Status ReadDims(const Arg& shape, int64_t row, int rank, int64_t* dims) {
  const int64_t own = RowIndex(shape, row);
  const int64_t count = shape.column->RowItems(own);
  if (count != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shape must have ", rank, " dimensions; got ", count));
  }
  if (shape.column->dtype() == DType::kInt64) {
    std::copy_n(shape.column->Row<int64_t>(own), rank, dims);
  } else {
    const Ints ints = ReadInts(*shape.column, own);
    std::copy(ints.begin(), ints.end(), dims);
  }
  return absl::OkStatus();
}

RowsWriter::RowsWriter(DType dtype, int rank, int64_t rows)
    : dtype_(dtype),
      rank_(rank),
      rows_(rows),
      item_size_(ItemSize(dtype)),
      dims_buffer_(Buffer::Allocate(rows * rank * sizeof(int64_t))),
      dims_(dims_buffer_.MutableAs<int64_t>()),
      pointers_buffer_(Buffer::Allocate(rows * sizeof(void*))),
      pointers_(pointers_buffer_.MutableAs<std::byte*>()) {}

void RowsWriter::Allocate(const EvalContext* context) {
  // Offsets first; they become pointers once there is memory to point into.
  size_t total = 0;
  for (int64_t row = 0; row < rows_; ++row) {
    int64_t items = 1;
    for (int i = 0; i < rank_; ++i) {
      const int64_t dim = dims_[row * rank_ + i];
      items *= dim;
      is_uniform_ = is_uniform_ && dim == dims_[i];
    }
    pointers_[row] = reinterpret_cast<std::byte*>(total);
    total += items * item_size_;
  }
  values_ = context != nullptr ? context->AllocateResult(total)
                               : Buffer::Allocate(total);
  std::byte* base = values_.MutableAs<std::byte>();
  for (int64_t row = 0; row < rows_; ++row) {
    pointers_[row] = base + reinterpret_cast<size_t>(pointers_[row]);
  }
}

Column RowsWriter::Finish(Pins pins) && {
  if (is_uniform_ && rows_ > 0) {
    return Column::Dense(dtype_, Shape(dims_, dims_ + rank_), rows_,
                         std::move(values_), std::move(pins));
  }
  pins.push_back(values_.owner());
  return Column::Ragged(dtype_, rank_, rows_, std::move(pointers_buffer_),
                        std::move(dims_buffer_), std::move(pins));
}

}  // namespace penstock::functions
