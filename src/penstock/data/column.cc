#include "penstock/data/column.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock {

std::string ToString(absl::Span<const int64_t> shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "),
                      shape.size() == 1 ? ",)" : ")");
}

Column Column::Dense(DType dtype, Shape shape, int64_t rows, Buffer values,
                     Pins pins) {
  Column column;
  column.dtype_ = dtype;
  column.rank_ = static_cast<int>(shape.size());
  column.rows_ = rows;
  column.items_ = NumItems(shape);
  column.row_bytes_ = column.items_ * static_cast<int64_t>(ItemSize(dtype));
  column.shape_ = std::move(shape);
  column.values_ = std::move(values);
  column.pins_ = std::move(pins);
  return column;
}

Column Column::Ragged(DType dtype, int rank, int64_t rows, Buffer row_data,
                      Buffer dims, Pins pins) {
  Column column;
  column.dtype_ = dtype;
  column.layout_ = Layout::kRagged;
  column.rank_ = rank;
  column.rows_ = rows;
  column.values_ = std::move(row_data);
  column.dims_ = std::move(dims);
  column.pins_ = std::move(pins);
  return column;
}

Column Column::Slice(int64_t begin, int64_t count) const {
  Column out = *this;
  out.rows_ = count;
  if (is_dense()) {
    out.values_ = values_.Slice(begin * row_bytes_, count * row_bytes_);
    return out;
  }
  out.values_ = values_.Slice(begin * sizeof(void*), count * sizeof(void*));
  const size_t dim_bytes = rank_ * sizeof(int64_t);
  out.dims_ = dims_.Slice(begin * dim_bytes, count * dim_bytes);
  return out;
}

Column Column::Reshape(int64_t rows, Shape shape) const {
  return Dense(dtype_, std::move(shape), rows, values_, pins_);
}

int64_t Column::NumBytes() const {
  int64_t bytes = 0;
  if (dtype_ != DType::kString) {
    if (is_dense()) return rows_ * row_bytes_;
    for (int64_t row = 0; row < rows_; ++row) bytes += RowItems(row);
    return bytes * static_cast<int64_t>(ItemSize(dtype_));
  }
  for (int64_t row = 0; row < rows_; ++row) {
    const StringRef* items = Row<StringRef>(row);
    const int64_t count = RowItems(row);
    for (int64_t i = 0; i < count; ++i) bytes += items[i].size;
    bytes += count * static_cast<int64_t>(sizeof(StringRef));
  }
  return bytes;
}

Column RowOf(const Column& column, int64_t row) {
  if (column.is_dense()) return column.Slice(row, 1);
  absl::Span<const int64_t> shape = column.RowShape(row);
  const size_t bytes = column.RowItems(row) * ItemSize(column.dtype());
  Pins pins = column.pins();
  Owner owner = column.values().owner();
  return Column::Dense(column.dtype(), Shape(shape.begin(), shape.end()), 1,
                       Buffer(std::move(owner), column.RowData(row), bytes),
                       std::move(pins));
}

Column MakeStringColumn(absl::Span<const std::string_view> values) {
  size_t total = 0;
  for (std::string_view value : values) total += value.size();
  Buffer bytes = Buffer::Allocate(total);
  Buffer refs = Buffer::Allocate(values.size() * sizeof(StringRef));
  char* out = bytes.MutableAs<char>();
  StringRef* ref = refs.MutableAs<StringRef>();
  for (std::string_view value : values) {
    if (!value.empty()) std::memcpy(out, value.data(), value.size());
    *ref++ = StringRef{out, value.size()};
    out += value.size();
  }
  return Column::Dense(DType::kString, {}, static_cast<int64_t>(values.size()),
                       std::move(refs), Pins{bytes.owner()});
}

Column ZeroColumn(DType dtype, const Shape& shape, int64_t rows) {
  const size_t bytes = rows * NumItems(shape) * ItemSize(dtype);
  Buffer values = Buffer::Allocate(bytes);
  std::memset(values.MutableAs<char>(), 0, bytes);
  return Column::Dense(dtype, shape, rows, std::move(values));
}

}  // namespace penstock
