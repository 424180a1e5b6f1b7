#include "penstock/data/chunk.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

// Dense rows above this many bytes are gathered as pointers.
constexpr int64_t kCopyRowBytes = 512;

template <typename Word>
void GatherWords(const std::byte* from, absl::Span<const int32_t> rows,
                 std::byte* to) {
  const Word* in = reinterpret_cast<const Word*>(from);
  Word* out = reinterpret_cast<Word*>(to);
  for (size_t i = 0; i < rows.size(); ++i) out[i] = in[rows[i]];
}

void GatherRows(const std::byte* from, int64_t row_bytes,
                absl::Span<const int32_t> rows, std::byte* to) {
  switch (row_bytes) {
    case 1:
      return GatherWords<uint8_t>(from, rows, to);
    case 2:
      return GatherWords<uint16_t>(from, rows, to);
    case 4:
      return GatherWords<uint32_t>(from, rows, to);
    case 8:
      return GatherWords<uint64_t>(from, rows, to);
    case 16:
      return GatherWords<StringRef>(from, rows, to);
    default:
      break;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(to + i * row_bytes, from + rows[i] * row_bytes, row_bytes);
  }
}

Pins WithOwner(const Column& column) {
  Pins pins = column.pins();
  pins.push_back(column.values().owner());
  return pins;
}

Column GatherColumn(const Column& column, absl::Span<const int32_t> rows) {
  const auto count = static_cast<int64_t>(rows.size());
  if (column.is_dense() && column.row_bytes() <= kCopyRowBytes) {
    Buffer values = Buffer::Allocate(count * column.row_bytes());
    GatherRows(column.values().data(), column.row_bytes(), rows,
               values.MutableAs<std::byte>());
    return Column::Dense(column.dtype(), column.shape(), count,
                         std::move(values), column.pins());
  }
  const int rank = column.rank();
  Buffer data = Buffer::Allocate(count * sizeof(void*));
  Buffer dims = Buffer::Allocate(count * rank * sizeof(int64_t));
  const std::byte** out = data.MutableAs<const std::byte*>();
  int64_t* dim = dims.MutableAs<int64_t>();
  for (int32_t row : rows) {
    *out++ = column.RowData(row);
    dim = std::copy_n(column.RowShape(row).begin(), rank, dim);
  }
  return Column::Ragged(column.dtype(), rank, count, std::move(data),
                        std::move(dims),
                        column.is_dense() ? WithOwner(column) : column.pins());
}

}  // namespace

int64_t Chunk::NumBytes() const {
  int64_t bytes = static_cast<int64_t>(lineage.size());
  for (const Column& column : columns) bytes += column.NumBytes();
  return bytes;
}

Chunk Slice(const Chunk& chunk, int64_t begin, int64_t count) {
  if (begin == 0 && count == chunk.rows) return chunk;
  Chunk out;
  out.rows = count;
  out.columns.reserve(chunk.columns.size());
  for (const Column& column : chunk.columns) {
    out.columns.push_back(column.Slice(begin, count));
  }
  if (chunk.has_lineage()) {
    out.lineage =
        chunk.lineage.Slice(begin * sizeof(uint64_t), count * sizeof(uint64_t));
  }
  for (const RowError& error : chunk.errors) {
    if (error.row >= begin && error.row < begin + count) {
      out.errors.push_back({error.row - begin, error.status});
    }
  }
  return out;
}

Chunk Gather(const Chunk& chunk, absl::Span<const int32_t> rows) {
  Chunk out;
  out.rows = static_cast<int64_t>(rows.size());
  out.columns.reserve(chunk.columns.size());
  for (const Column& column : chunk.columns) {
    out.columns.push_back(GatherColumn(column, rows));
  }
  if (chunk.has_lineage()) {
    out.lineage = Buffer::Allocate(rows.size() * sizeof(uint64_t));
    GatherRows(chunk.lineage.data(), sizeof(uint64_t), rows,
               out.lineage.MutableAs<std::byte>());
  }
  if (!chunk.errors.empty()) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (const absl::Status* status = ErrorAt(chunk, rows[i])) {
        out.errors.push_back({static_cast<int64_t>(i), *status});
      }
    }
  }
  return out;
}

const absl::Status* ErrorAt(const Chunk& chunk, int64_t row) {
  auto it = std::lower_bound(
      chunk.errors.begin(), chunk.errors.end(), row,
      [](const RowError& error, int64_t value) { return error.row < value; });
  return it != chunk.errors.end() && it->row == row ? &it->status : nullptr;
}

Chunk ErrorChunk(absl::Status status, std::vector<Column> columns) {
  Chunk chunk;
  chunk.rows = 1;
  chunk.columns = std::move(columns);
  chunk.errors.push_back({0, std::move(status)});
  return chunk;
}

}  // namespace penstock
