// A column: one component of a run of rows.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "penstock/data/buffer.h"
#include "penstock/data/dtype.h"
#include "penstock/data/shape.h"

namespace penstock {

// What the pointers inside a column's buffers refer to: kept alive with it.
using Pins = absl::InlinedVector<Owner, 1>;

// Some rows' values of one dtype. Immutable and cheap to copy.
//
//   dense   every row has the same shape; values lie one after another in one
//           buffer, rows x items of a row.
//   ragged  rows of one rank and different sizes (or scattered rows of one
//           size): a pointer and the dimensions per row.
//
// An item of dtype string is a StringRef whose bytes the pins keep alive.
class Column final {
 public:
  enum class Layout : uint8_t { kDense, kRagged };

  Column() = default;

  // REQUIRES: values holds rows x NumItems(shape) items.
  static Column Dense(DType dtype, Shape shape, int64_t rows, Buffer values,
                      Pins pins = {});
  // REQUIRES: row_data holds `rows` pointers, dims rows x rank int64.
  static Column Ragged(DType dtype, int rank, int64_t rows, Buffer row_data,
                       Buffer dims, Pins pins);

  DType dtype() const { return dtype_; }
  int64_t rows() const { return rows_; }
  Layout layout() const { return layout_; }
  bool is_dense() const { return layout_ == Layout::kDense; }
  int rank() const { return rank_; }
  // Of every row. REQUIRES: dense.
  const Shape& shape() const { return shape_; }
  const Buffer& values() const { return values_; }
  const Buffer& dims() const { return dims_; }
  const Pins& pins() const { return pins_; }

  absl::Span<const int64_t> RowShape(int64_t row) const {
    if (is_dense()) return shape_;
    return {dims_.As<int64_t>() + row * rank_, static_cast<size_t>(rank_)};
  }
  int64_t RowItems(int64_t row) const {
    return is_dense() ? items_ : NumItems(RowShape(row));
  }
  const std::byte* RowData(int64_t row) const {
    if (is_dense()) return values_.data() + row * row_bytes_;
    return values_.As<const std::byte*>()[row];
  }
  template <typename T>
  const T* Row(int64_t row) const {
    return reinterpret_cast<const T*>(RowData(row));
  }
  // Bytes of a row's items in the value buffer. REQUIRES: dense.
  int64_t row_bytes() const { return row_bytes_; }

  // Rows [begin, begin + count) of this column; no copy.
  Column Slice(int64_t begin, int64_t count) const;

  // The same rows with another dense shape of as many items in all:
  // rows x items is kept, so batch and unbatch are this. REQUIRES: dense.
  Column Reshape(int64_t rows, Shape shape) const;

  // Memory that the values take, string bytes included. Walks the rows of
  // strings and ragged columns.
  int64_t NumBytes() const;

 private:
  DType dtype_ = DType::kInt64;
  Layout layout_ = Layout::kDense;
  int rank_ = 0;
  int64_t rows_ = 0;
  int64_t items_ = 0;      // of a row, dense only
  int64_t row_bytes_ = 0;  // dense only
  Shape shape_;            // dense only
  Buffer values_;          // dense: items; ragged: a pointer per row
  Buffer dims_;            // ragged only: rows x rank
  Pins pins_;
};

// A dense column of one row over the items of row `row`; no copy.
Column RowOf(const Column& column, int64_t row);

// A dense column of scalars.
template <typename T>
Column MakeColumn(absl::Span<const T> values) {
  Buffer buffer = Buffer::Allocate(values.size() * sizeof(T));
  T* out = buffer.MutableAs<T>();
  for (size_t i = 0; i < values.size(); ++i) out[i] = values[i];
  return Column::Dense(kDTypeOf<T>, {}, static_cast<int64_t>(values.size()),
                       std::move(buffer));
}

// A dense column of scalar strings with its own copy of the bytes.
Column MakeStringColumn(absl::Span<const std::string_view> values);

// A dense column of zeros (empty strings) of `shape`.
Column ZeroColumn(DType dtype, const Shape& shape, int64_t rows);

}  // namespace penstock
