#include "penstock/data/stack.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

Pins AllPins(const Column& column) {
  Pins pins = column.pins();
  if (column.is_dense()) pins.push_back(column.values().owner());
  return pins;
}

Shape WithFirst(int64_t first, absl::Span<const int64_t> rest) {
  Shape shape{first};
  shape.insert(shape.end(), rest.begin(), rest.end());
  return shape;
}

// Copies an array of `shape` into the front corner of one of `to_shape`.
void CopyCorner(const std::byte* from, absl::Span<const int64_t> shape,
                std::byte* to, absl::Span<const int64_t> to_shape,
                size_t item_size) {
  if (shape.empty()) {
    std::memcpy(to, from, item_size);
    return;
  }
  const size_t from_stride = NumItems(shape.subspan(1)) * item_size;
  const size_t to_stride = NumItems(to_shape.subspan(1)) * item_size;
  if (shape.subspan(1) == to_shape.subspan(1)) {
    if (shape[0] > 0) std::memcpy(to, from, shape[0] * from_stride);
    return;
  }
  for (int64_t i = 0; i < shape[0]; ++i) {
    CopyCorner(from + i * from_stride, shape.subspan(1), to + i * to_stride,
               to_shape.subspan(1), item_size);
  }
}

void FillWith(const std::byte* item, size_t item_size, int64_t count,
              std::byte* to) {
  const bool is_zero = std::all_of(
      item, item + item_size, [](std::byte b) { return b == std::byte{0}; });
  if (is_zero) {
    std::memset(to, 0, count * item_size);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * item_size, item, item_size);
  }
}

}  // namespace

absl::StatusOr<Column> Stack(const Column& column, int64_t size) {
  const int64_t groups = size == 0 ? 0 : column.rows() / size;
  if (column.is_dense()) {
    return column.Reshape(groups, WithFirst(size, column.shape()));
  }
  const Shape none(column.rank(), 0);
  const absl::Span<const int64_t> shape =
      column.rows() > 0 ? column.RowShape(0) : none;
  for (int64_t row = 1; row < column.rows(); ++row) {
    if (column.RowShape(row) == shape) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "elements of a batch must have one shape; got ", ToString(shape),
        " and ", ToString(column.RowShape(row)), " at position ", row,
        " of the batch\n  Use padded_batch(), or make the shapes equal."));
  }
  const size_t row_bytes = NumItems(shape) * ItemSize(column.dtype());
  Buffer values = Buffer::Allocate(column.rows() * row_bytes);
  std::byte* to = values.MutableAs<std::byte>();
  for (int64_t row = 0; row < column.rows(); ++row, to += row_bytes) {
    if (row_bytes > 0) std::memcpy(to, column.RowData(row), row_bytes);
  }
  return Column::Dense(column.dtype(), WithFirst(size, shape), groups,
                       std::move(values), AllPins(column));
}

absl::StatusOr<Column> PadAndStack(const Column& column,
                                   const PartialShape& shape,
                                   const Column& padding) {
  const int64_t rows = column.rows();
  if (shape.has_rank() && shape.rank() != column.rank()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "padded shape ", shape.ToString(), " needs elements of rank ",
        shape.rank(), "; got shape ", ToString(column.RowShape(0))));
  }
  Shape target(column.rank(), 0);
  for (int64_t row = 0; row < rows; ++row) {
    const absl::Span<const int64_t> dims = column.RowShape(row);
    for (int d = 0; d < column.rank(); ++d) {
      target[d] = std::max(target[d], dims[d]);
    }
  }
  if (shape.has_rank()) {
    for (int d = 0; d < column.rank(); ++d) {
      if (!shape.dims()[d].has_value()) continue;
      if (target[d] > *shape.dims()[d]) {
        return absl::InvalidArgumentError(absl::StrCat(
            "elements must fit the padded shape ", shape.ToString(),
            "; one has ", target[d], " in dimension ", d));
      }
      target[d] = *shape.dims()[d];
    }
  }
  const size_t item_size = ItemSize(column.dtype());
  const int64_t row_items = NumItems(target);
  Buffer values = Buffer::Allocate(rows * row_items * item_size);
  std::byte* to = values.MutableAs<std::byte>();
  const std::byte* pad = padding.RowData(0);
  for (int64_t row = 0; row < rows; ++row, to += row_items * item_size) {
    const absl::Span<const int64_t> dims = column.RowShape(row);
    const int64_t items = column.RowItems(row);
    if (column.rank() <= 1) {  // the common case: items, then padding
      if (items > 0) std::memcpy(to, column.RowData(row), items * item_size);
      FillWith(pad, item_size, row_items - items, to + items * item_size);
      continue;
    }
    if (items < row_items) FillWith(pad, item_size, row_items, to);
    if (items > 0) CopyCorner(column.RowData(row), dims, to, target, item_size);
  }
  Pins pins = AllPins(column);
  pins.insert(pins.end(), padding.pins().begin(), padding.pins().end());
  return Column::Dense(column.dtype(), WithFirst(rows, target), 1,
                       std::move(values), std::move(pins));
}

absl::Status OfComponent(size_t component, size_t components,
                         const absl::Status& status) {
  if (components == 1) return status;
  return absl::Status(status.code(),
                      absl::StrCat("in component ", component, ", ",
                                   std::string(status.message())));
}

absl::Status UnequalRanks(std::string_view whole, const Chunk& first,
                          const Chunk& other) {
  const size_t last = first.columns.size() - 1;
  size_t component = 0;
  while (component < last &&
         first.columns[component].rank() == other.columns[component].rank()) {
    ++component;
  }
  return OfComponent(
      component, first.columns.size(),
      absl::InvalidArgumentError(absl::StrCat(
          "elements of a ", std::string(whole), " must have one rank; got ",
          ToString(first.columns[component].RowShape(0)), " and ",
          ToString(other.columns[component].RowShape(0)),
          "\n  Make the ranks equal with reshape() or expand_dims(), or keep "
          "the kinds apart with filter() or group_by_window().")));
}

}  // namespace penstock
