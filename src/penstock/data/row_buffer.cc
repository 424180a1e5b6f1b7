#include "penstock/data/row_buffer.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace penstock {
namespace {

// Bytes that outlive the buffer that gathered them, aligned for any item.
Buffer Owned(std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  const void* data = owner->data();
  if (reinterpret_cast<uintptr_t>(data) % 16 == 0) {
    const size_t size = owner->size();
    return Buffer(std::move(owner), data, size);
  }
  // A short string lies inside its object, which may be aligned to 8.
  Buffer copy = Buffer::Allocate(owner->size());
  if (!owner->empty()) {
    std::memcpy(copy.MutableAs<char>(), data, owner->size());
  }
  return copy;
}

}  // namespace

void RowBuffer::Append(const Chunk& chunk, absl::Span<const int32_t> rows) {
  if (rows.empty()) return;
  if (rows_ == 0) {
    columns_.resize(chunk.columns.size());
    for (size_t c = 0; c < columns_.size(); ++c) {
      columns_[c] = Cells();
      columns_[c].dtype = chunk.columns[c].dtype();
      columns_[c].rank = chunk.columns[c].rank();
      const absl::Span<const int64_t> shape =
          chunk.columns[c].RowShape(rows[0]);
      columns_[c].dims.assign(shape.begin(), shape.end());
    }
  }
  rows_ += static_cast<int64_t>(rows.size());
  for (size_t c = 0; c < columns_.size(); ++c) {
    is_uniform_ &= columns_[c].rank == chunk.columns[c].rank();
  }
  if (!is_uniform_) return;
  for (size_t c = 0; c < columns_.size(); ++c) {
    AppendTo(columns_[c], chunk.columns[c], rows);
  }
  if (chunk.has_lineage()) {
    for (int32_t row : rows) {
      lineage_.push_back(chunk.lineage.As<uint64_t>()[row]);
    }
  }
  bytes_ += static_cast<int64_t>(rows.size() * sizeof(uint64_t));
}

void RowBuffer::AppendTo(Cells& cells, const Column& column,
                         absl::Span<const int32_t> rows) {
  const size_t rank = cells.rank;
  const size_t before = cells.values.size();
  if (cells.is_dense) {
    const absl::Span<const int64_t> first(cells.dims.data(), rank);
    const bool is_same =
        column.is_dense()
            ? absl::Span<const int64_t>(column.shape()) == first
            : std::all_of(rows.begin(), rows.end(), [&](int32_t row) {
                return column.RowShape(row) == first;
              });
    if (!is_same) {
      // From here on every row has dimensions of its own, those before too.
      const int64_t known = rows_ - static_cast<int64_t>(rows.size());
      const std::vector<int64_t> shape = cells.dims;
      cells.dims.clear();
      for (int64_t i = 0; i < known; ++i) {
        cells.dims.insert(cells.dims.end(), shape.begin(), shape.end());
      }
      cells.is_dense = false;
    }
  }
  const size_t item_size = ItemSize(cells.dtype);
  for (int32_t row : rows) {
    const int64_t items = column.RowItems(row);
    if (!cells.is_dense) {
      const absl::Span<const int64_t> shape = column.RowShape(row);
      cells.dims.insert(cells.dims.end(), shape.begin(), shape.end());
    }
    if (cells.dtype != DType::kString) {
      cells.values.append(column.Row<char>(row), items * item_size);
      continue;
    }
    const StringRef* refs = column.Row<StringRef>(row);
    for (int64_t i = 0; i < items; ++i) {
      cells.values.append(refs[i].data, refs[i].size);
      cells.sizes.push_back(refs[i].size);
    }
    bytes_ += items * static_cast<int64_t>(sizeof(uint64_t));
  }
  bytes_ += static_cast<int64_t>(cells.values.size() - before);
}

Column RowBuffer::TakeFrom(Cells& cells) const {
  Buffer values = Owned(std::move(cells.values));
  Pins pins;
  if (cells.dtype == DType::kString) {
    Buffer refs = Buffer::Allocate(cells.sizes.size() * sizeof(StringRef));
    StringRef* ref = refs.MutableAs<StringRef>();
    const char* at = values.As<char>();
    for (uint64_t size : cells.sizes) {
      *ref++ = {at, size};
      at += size;
    }
    pins.push_back(values.owner());
    values = std::move(refs);
  }
  if (cells.is_dense) {
    return Column::Dense(cells.dtype,
                         Shape(cells.dims.begin(), cells.dims.end()), rows_,
                         std::move(values), std::move(pins));
  }
  const size_t rank = cells.rank;
  Buffer data = Buffer::Allocate(rows_ * sizeof(void*));
  Buffer dims = Buffer::Allocate(rows_ * rank * sizeof(int64_t));
  std::copy(cells.dims.begin(), cells.dims.end(), dims.MutableAs<int64_t>());
  const std::byte** pointer = data.MutableAs<const std::byte*>();
  const std::byte* at = values.data();
  for (int64_t row = 0; row < rows_; ++row) {
    *pointer++ = at;
    at += NumItems({cells.dims.data() + row * rank, rank}) *
          ItemSize(cells.dtype);
  }
  pins.push_back(values.owner());
  return Column::Ragged(cells.dtype, cells.rank, rows_, std::move(data),
                        std::move(dims), std::move(pins));
}

Chunk RowBuffer::Take() {
  Chunk out;
  if (is_uniform_) {
    out.rows = rows_;
    for (Cells& cells : columns_) out.columns.push_back(TakeFrom(cells));
    if (!lineage_.empty()) {
      out.lineage = Buffer::Allocate(lineage_.size() * sizeof(uint64_t));
      std::copy(lineage_.begin(), lineage_.end(),
                out.lineage.MutableAs<uint64_t>());
    }
  }
  *this = RowBuffer();
  return out;
}

}  // namespace penstock
