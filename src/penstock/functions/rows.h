// Making a column whose rows may have different shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/column.h"
#include "penstock/functions/function.h"

namespace penstock::functions {

// The most that one element's value may take, in bytes.
inline constexpr int64_t kMaxElementBytes = int64_t{2} << 30;

// 1 if every argument is uniform: the result then is too.
inline int64_t ResultRows(absl::Span<const Arg> args,
                          const EvalContext& context) {
  for (const Arg& arg : args) {
    if (!arg.is_uniform) return context.rows;
  }
  return 1;
}

// The row of `arg` that belongs to row `row` of the result.
inline int64_t RowIndex(const Arg& arg, int64_t row) {
  return arg.is_uniform ? 0 : row;
}

// Whether every row of the argument is known to have one shape.
inline bool HasOneShape(const Arg& arg) { return arg.column->is_dense(); }

// Whether the argument's values may be overwritten: nobody else will see them.
bool MayOverwrite(const Arg& arg, int64_t rows);

// Adds what `more` keeps alive to `pins`, each once.
void AddPins(Pins& pins, const Pins& more);
// What string items copied out of `args` need; nothing for other dtypes.
Pins StringPins(absl::Span<const Arg> args);

void ReportRow(EvalContext& context, int64_t row, absl::Status status);

// What an error row that should hold one item points to.
alignas(16) inline constexpr std::byte kZeroItem[16] = {};

// InvalidArgument unless a value of this shape is within kMaxElementBytes.
absl::Status CheckElementSize(absl::Span<const int64_t> shape, DType dtype);

// Three steps: every row's shape, Allocate(), every row's items. All rows lie
// in one buffer one after another, so that rows that turn out to have one
// shape are a dense column.
class RowsWriter final {
 public:
  RowsWriter(DType dtype, int rank, int64_t rows);

  int64_t* dims(int64_t row) { return dims_ + row * rank_; }
  void SetShape(int64_t row, absl::Span<const int64_t> shape) {
    for (int i = 0; i < rank_; ++i) dims(row)[i] = shape[i];
  }
  absl::Span<const int64_t> shape(int64_t row) const {
    return {dims_ + row * rank_, static_cast<size_t>(rank_)};
  }
  // `context`: of the call whose result this is.
  void Allocate(const EvalContext* context = nullptr);
  std::byte* RowData(int64_t row) { return pointers_[row]; }
  size_t RowBytes(int64_t row) const {
    return NumItems(shape(row)) * item_size_;
  }
  // `pins`: what string items point into.
  Column Finish(Pins pins) &&;

 private:
  DType dtype_;
  int rank_;
  int64_t rows_;
  size_t item_size_;
  bool is_uniform_ = true;
  Buffer dims_buffer_;
  int64_t* dims_;
  Buffer pointers_buffer_;
  std::byte** pointers_;
  Buffer values_;
};

// A column of `rows` rows. shape_of(row, int64_t* dims) -> absl::Status sets a
// row's `rank` dimensions, or gives the error of that row;
// fill(row, shape, std::byte* out) then writes the items.
// `has_one_shape`: shape_of need be asked for one row only (it is asked even
// if there are no rows at all, as row 0).
template <typename ShapeOf, typename Fill>
absl::StatusOr<Column> MakeRows(DType dtype, int rank, int64_t rows,
                                bool has_one_shape, Pins pins,
                                EvalContext& context, ShapeOf&& shape_of,
                                Fill&& fill) {
  if (has_one_shape) {
    Shape shape(rank);
    absl::Status status = shape_of(int64_t{0}, shape.data());
    if (status.ok()) status = CheckElementSize(shape, dtype);
    if (status.ok()) {
      const size_t row_bytes = NumItems(shape) * ItemSize(dtype);
      Buffer values = context.AllocateResult(rows * row_bytes);
      std::byte* out = values.MutableAs<std::byte>();
      for (int64_t row = 0; row < rows; ++row, out += row_bytes) {
        fill(row, absl::Span<const int64_t>(shape), out);
      }
      return Column::Dense(dtype, std::move(shape), rows, std::move(values),
                           std::move(pins));
    }
    for (int64_t row = 0; row < rows; ++row) ReportRow(context, row, status);
    return ZeroColumn(dtype, Shape(rank), rows);
  }
  RowsWriter writer(dtype, rank, rows);
  absl::InlinedVector<int64_t, 4> bad;
  for (int64_t row = 0; row < rows; ++row) {
    absl::Status status = shape_of(row, writer.dims(row));
    if (status.ok()) status = CheckElementSize(writer.shape(row), dtype);
    if (!status.ok()) {
      ReportRow(context, row, std::move(status));
      bad.push_back(row);
      for (int i = 0; i < rank; ++i) writer.dims(row)[i] = 0;
    }
  }
  writer.Allocate(&context);
  size_t next_bad = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (next_bad < bad.size() && bad[next_bad] == row) {
      ++next_bad;
      std::memset(writer.RowData(row), 0, writer.RowBytes(row));
      continue;
    }
    fill(row, writer.shape(row), writer.RowData(row));
  }
  return std::move(writer).Finish(std::move(pins));
}

// Rows that lie where those of `x` do, with other shapes; no copy.
// shape_of as for MakeRows(); the items of a shape must be those of the row.
template <typename ShapeOf>
Column MakeViews(const Arg& x, int rank, int64_t rows, EvalContext& context,
                 ShapeOf&& shape_of) {
  const Column& from = *x.column;
  Buffer pointers = Buffer::Allocate(rows * sizeof(void*));
  Buffer dims = Buffer::Allocate(rows * rank * sizeof(int64_t));
  const std::byte** pointer = pointers.MutableAs<const std::byte*>();
  int64_t* dim = dims.MutableAs<int64_t>();
  for (int64_t row = 0; row < rows; ++row, dim += rank) {
    pointer[row] = from.RowData(RowIndex(x, row));
    absl::Status status = shape_of(row, dim);
    if (!status.ok()) {
      ReportRow(context, row, std::move(status));
      for (int i = 0; i < rank; ++i) dim[i] = 0;
      pointer[row] = kZeroItem;
    }
  }
  Pins pins = from.pins();
  pins.push_back(from.values().owner());
  return Column::Ragged(from.dtype(), rank, rows, std::move(pointers),
                        std::move(dims), std::move(pins));
}

// The rank of a result whose shapes are the rows of `shape`: the promised one,
// else the largest. InvalidArgument above kMaxRank.
absl::StatusOr<int> RankFrom(const Arg& shape, int64_t rows,
                             const PartialShape& promised);
// Reads the shape for row `row` of the result; an error if it has another rank.
absl::Status ReadDims(const Arg& shape, int64_t row, int rank, int64_t* dims);

}  // namespace penstock::functions
