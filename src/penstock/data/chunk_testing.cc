#include "penstock/data/chunk_testing.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock {
namespace {

// Appends items [at, …) as an array of `shape`, and moves `at` behind them.
void AppendArray(const std::vector<std::string>& items,
                 absl::Span<const int64_t> shape, size_t& at,
                 std::string& out) {
  if (shape.empty()) {
    out += items[at++];
    return;
  }
  out += '[';
  for (int64_t i = 0; i < shape[0]; ++i) {
    if (i > 0) out += ' ';
    AppendArray(items, shape.subspan(1), at, out);
  }
  out += ']';
}

std::string ItemText(DType dtype, const std::byte* item) {
  return VisitDType(dtype, [item](auto zero) -> std::string {
    using T = decltype(zero);
    const T& value = *reinterpret_cast<const T*>(item);
    if constexpr (std::is_same_v<T, StringRef>) {
      return absl::StrCat("\"", std::string(value.view()), "\"");
    } else if constexpr (std::is_same_v<T, bool>) {
      return value ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
      return std::to_string(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      return absl::StrCat(value);
    } else if constexpr (std::is_same_v<T, Half> ||
                         std::is_same_v<T, Bfloat16>) {
      return absl::StrCat(static_cast<float>(value));
    } else {
      return absl::StrCat(value.real(), "+", value.imag(), "i");
    }
  });
}

std::string CellText(const Column& column, int64_t row) {
  const size_t item_size = ItemSize(column.dtype());
  std::vector<std::string> items;
  for (int64_t i = 0; i < column.RowItems(row); ++i) {
    items.push_back(
        ItemText(column.dtype(), column.RowData(row) + i * item_size));
  }
  std::string out;
  size_t at = 0;
  AppendArray(items, column.RowShape(row), at, out);
  return out;
}

// Rows of any type, each a pointer to its own items.
template <typename T>
Column Ragged(const std::vector<std::vector<T>>& rows, Pins pins) {
  const auto count = static_cast<int64_t>(rows.size());
  Buffer data = Buffer::Allocate(count * sizeof(void*));
  Buffer dims = Buffer::Allocate(count * sizeof(int64_t));
  for (int64_t i = 0; i < count; ++i) {
    Buffer items = Buffer::Allocate(rows[i].size() * sizeof(T));
    std::copy(rows[i].begin(), rows[i].end(), items.MutableAs<T>());
    data.MutableAs<const void*>()[i] = items.data();
    dims.MutableAs<int64_t>()[i] = static_cast<int64_t>(rows[i].size());
    pins.push_back(items.owner());
  }
  return Column::Ragged(kDTypeOf<T>, 1, count, std::move(data), std::move(dims),
                        std::move(pins));
}

}  // namespace

std::vector<std::string> ToText(const Chunk& chunk) {
  std::vector<std::string> rows;
  for (int64_t row = 0; row < chunk.rows; ++row) {
    if (const absl::Status* error = ErrorAt(chunk, row)) {
      rows.push_back(
          absl::StrCat("!", absl::StatusCodeToString(error->code())));
      continue;
    }
    std::vector<std::string> cells;
    for (const Column& column : chunk.columns) {
      cells.push_back(CellText(column, row));
    }
    const std::string text = absl::StrJoin(cells, ", ");
    rows.push_back(cells.size() == 1 ? text : absl::StrCat("(", text, ")"));
  }
  return rows;
}

std::vector<std::string> ToText(const Column& column) {
  return ToText(ChunkOf({column}));
}

Column RaggedInts(const std::vector<std::vector<int64_t>>& rows) {
  return Ragged<int64_t>(rows, {});
}

Column RaggedStrings(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<StringRef>> refs;
  Pins pins;
  for (const std::vector<std::string>& row : rows) {
    const std::vector<std::string_view> views(row.begin(), row.end());
    const Column strings = MakeStringColumn(views);
    const auto* begin = strings.Row<StringRef>(0);
    refs.emplace_back(begin, begin + strings.rows());
    pins.insert(pins.end(), strings.pins().begin(), strings.pins().end());
  }
  return Ragged<StringRef>(refs, std::move(pins));
}

Chunk ChunkOf(std::vector<Column> columns, std::vector<RowError> errors) {
  Chunk chunk;
  chunk.rows = columns.empty() ? 0 : columns[0].rows();
  chunk.columns = std::move(columns);
  chunk.errors = std::move(errors);
  return chunk;
}

}  // namespace penstock
