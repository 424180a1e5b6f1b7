#include "penstock/data/encode.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "penstock/base/status.h"
#include "penstock/data/align.h"
#include "penstock/data/copy_past_caches.h"

namespace penstock {
namespace {

constexpr uint32_t kMagic = 0x314b5350;  // "PSK1"

struct Header {
  uint32_t magic;
  uint32_t columns;
  uint64_t rows;
  uint64_t bytes;
  uint64_t errors_offset;
  uint64_t errors;
};
static_assert(sizeof(Header) == 40);

struct Descriptor {
  uint8_t dtype;
  uint8_t layout;
  uint8_t rank;
  uint8_t zeros[5];
  uint64_t values_offset;
  uint64_t values_bytes;
  uint64_t starts_offset;
  uint64_t dims_offset;
  uint64_t dims[kMaxRank];
};
static_assert(sizeof(Descriptor) == 104);

struct ErrorHeader {
  uint64_t row;
  uint32_t code;
  uint32_t size;
};
static_assert(sizeof(ErrorHeader) == 16);

int64_t TotalItems(const Column& column) {
  if (column.is_dense()) return column.rows() * NumItems(column.shape());
  int64_t items = 0;
  for (int64_t row = 0; row < column.rows(); ++row) {
    items += column.RowItems(row);
  }
  return items;
}

size_t StringBytes(const Column& column) {
  size_t bytes = 0;
  for (int64_t row = 0; row < column.rows(); ++row) {
    const StringRef* items = column.Row<StringRef>(row);
    const int64_t count = column.RowItems(row);
    for (int64_t i = 0; i < count; ++i) bytes += items[i].size;
  }
  return bytes;
}

// Whether the column's items can be read where they are, in a chunk at `base`.
bool IsInPlace(const Column& column, const std::byte* base, size_t values_end) {
  if (!column.is_dense() || column.dtype() == DType::kString) return false;
  const std::byte* data = column.values().data();
  return data >= base && data < base + values_end &&
         (data - base) % kAlignment == 0;
}

// Where everything goes; walked once for the size and once for the writing.
struct Plan {
  std::vector<Descriptor> descriptors;
  std::vector<std::pair<size_t, size_t>> gaps;  // begin and end
  size_t errors_offset = 0;
  size_t bytes = 0;
};

// What a column says of itself.
Descriptor Describe(const Column& column) {
  Descriptor d = {};
  d.dtype = static_cast<uint8_t>(column.dtype());
  d.layout = column.is_dense() ? 0 : 1;
  d.rank = static_cast<uint8_t>(column.rank());
  d.values_bytes = column.dtype() == DType::kString
                       ? StringBytes(column)
                       : TotalItems(column) * ItemSize(column.dtype());
  if (column.is_dense()) {
    std::copy(column.shape().begin(), column.shape().end(), d.dims);
  }
  return d;
}

bool IsApart(const Column& column, size_t least_bytes) {
  return column.is_dense() && column.dtype() != DType::kString &&
         Describe(column).values_bytes >= least_bytes;
}

// With `values_end` > 0, items that lie in [base, base + values_end) stay there
// and the rest goes after them. Of columns that are `apart` nothing is planned.
Plan MakePlan(const Chunk& chunk, const std::byte* base = nullptr,
              size_t values_end = 0, absl::Span<const bool> apart = {}) {
  Plan plan;
  size_t at = EncodedHeadSize(chunk.columns.size());
  if (values_end > 0) at = values_end;
  auto reserve = [&](size_t bytes) {
    const size_t offset = RoundUp(at, kAlignment);
    plan.gaps.emplace_back(at, offset);
    at = offset + bytes;
    return offset;
  };
  for (size_t c = 0; c < chunk.columns.size(); ++c) {
    const Column& column = chunk.columns[c];
    Descriptor d = Describe(column);
    if (apart.empty() || !apart[c]) {
      d.values_offset = IsInPlace(column, base, values_end)
                            ? column.values().data() - base
                            : reserve(d.values_bytes);
    }
    if (column.dtype() == DType::kString) {
      d.starts_offset = reserve((TotalItems(column) + 1) * sizeof(uint64_t));
    }
    if (!column.is_dense()) {
      d.dims_offset = reserve(column.rows() * column.rank() * sizeof(uint64_t));
    }
    plan.descriptors.push_back(d);
  }
  if (!chunk.errors.empty()) {
    plan.errors_offset = reserve(0);
    for (const RowError& error : chunk.errors) {
      at += sizeof(ErrorHeader) + RoundUp(error.status.message().size(), 8);
    }
  }
  plan.bytes = RoundUp(at, 8);
  plan.gaps.emplace_back(at, plan.bytes);
  return plan;
}

void WriteStrings(const Column& column, const Descriptor& d, std::byte* out) {
  char* values = reinterpret_cast<char*>(out + d.values_offset);
  uint64_t* start = reinterpret_cast<uint64_t*>(out + d.starts_offset);
  uint64_t at = 0;
  for (int64_t row = 0; row < column.rows(); ++row) {
    const StringRef* items = column.Row<StringRef>(row);
    const int64_t count = column.RowItems(row);
    for (int64_t i = 0; i < count; ++i) {
      *start++ = at;
      if (items[i].size > 0) {
        std::memcpy(values + at, items[i].data, items[i].size);
      }
      at += items[i].size;
    }
  }
  *start = at;
}

void WriteItems(const Column& column, const Descriptor& d, std::byte* out) {
  std::byte* values = out + d.values_offset;
  if (column.is_dense()) {
    if (d.values_bytes > 0 && values != column.values().data()) {
      CopyPastCaches(values, column.values().data(), d.values_bytes);
    }
    return;
  }
  const size_t item_size = ItemSize(column.dtype());
  for (int64_t row = 0; row < column.rows(); ++row) {
    const size_t bytes = column.RowItems(row) * item_size;
    if (bytes > 0) std::memcpy(values, column.RowData(row), bytes);
    values += bytes;
  }
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("damaged chunk: ", what));
}

// Everything about one column that untrusted bytes could get wrong.
class ColumnDecoder final {
 public:
  ColumnDecoder(const Buffer& bytes, uint64_t rows, const Descriptor& d)
      : bytes_(bytes), rows_(rows), d_(d) {}

  absl::StatusOr<Column> Decode() {
    if (!IsDType(d_.dtype) || d_.layout > 1 || d_.rank > kMaxRank) {
      return Damaged("unknown dtype, layout or rank");
    }
    dtype_ = static_cast<DType>(d_.dtype);
    PENSTOCK_RETURN_IF_ERROR(CheckRange(d_.values_offset, d_.values_bytes));
    return d_.layout == 0 ? DecodeDense() : DecodeRagged();
  }

 private:
  absl::Status CheckRange(uint64_t offset, uint64_t size) const {
    if (offset % 8 != 0 || offset > bytes_.size() ||
        size > bytes_.size() - offset) {
      return Damaged("a buffer lies outside it");
    }
    return absl::OkStatus();
  }

  // items x size within the chunk's own size, or an error: no overflow.
  absl::StatusOr<uint64_t> Multiply(uint64_t a, uint64_t b) const {
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product) || product > (1ULL << 48)) {
      return Damaged("a size overflows");
    }
    return product;
  }

  // Items of a row of these dimensions. Each is looked at on its own, too: with
  // a 0 among them the product says nothing.
  absl::StatusOr<uint64_t> RowItems(const uint64_t* dims) const {
    uint64_t items = 1;
    uint64_t largest = 1;
    for (int i = 0; i < d_.rank; ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(items, Multiply(items, dims[i]));
      PENSTOCK_ASSIGN_OR_RETURN(
          largest, Multiply(largest, std::max<uint64_t>(1, dims[i])));
    }
    return items;
  }

  absl::Status CheckItemBytes(uint64_t items) const {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t bytes,
                              Multiply(items, ItemSize(dtype_)));
    if (bytes != d_.values_bytes) return Damaged("values have another size");
    return absl::OkStatus();
  }

  absl::StatusOr<Buffer> StringRefs(uint64_t items) const {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t size, Multiply(items + 1, 8));
    PENSTOCK_RETURN_IF_ERROR(CheckRange(d_.starts_offset, size));
    const auto* starts =
        reinterpret_cast<const uint64_t*>(bytes_.data() + d_.starts_offset);
    const auto* values =
        reinterpret_cast<const char*>(bytes_.data() + d_.values_offset);
    Buffer refs = Buffer::Allocate(items * sizeof(StringRef));
    StringRef* ref = refs.MutableAs<StringRef>();
    for (uint64_t i = 0; i < items; ++i) {
      if (starts[i] > starts[i + 1] || starts[i + 1] > d_.values_bytes) {
        return Damaged("a string lies outside its values");
      }
      ref[i] = StringRef{values + starts[i], starts[i + 1] - starts[i]};
    }
    return refs;
  }

  absl::StatusOr<Column> DecodeDense() const {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t row_items, RowItems(d_.dims));
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t items, Multiply(rows_, row_items));
    Shape shape(d_.dims, d_.dims + d_.rank);
    if (dtype_ == DType::kString) {
      PENSTOCK_ASSIGN_OR_RETURN(Buffer refs, StringRefs(items));
      return Column::Dense(dtype_, std::move(shape), rows_, std::move(refs),
                           Pins{bytes_.owner()});
    }
    PENSTOCK_RETURN_IF_ERROR(CheckItemBytes(items));
    return Column::Dense(dtype_, std::move(shape), rows_,
                         bytes_.Slice(d_.values_offset, d_.values_bytes));
  }

  absl::StatusOr<Column> DecodeRagged() const {
    if (d_.rank == 0) return Damaged("scalars are always dense");
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t cells, Multiply(rows_, d_.rank));
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t dims_bytes, Multiply(cells, 8));
    PENSTOCK_RETURN_IF_ERROR(CheckRange(d_.dims_offset, dims_bytes));
    const auto* dims =
        reinterpret_cast<const uint64_t*>(bytes_.data() + d_.dims_offset);
    std::vector<uint64_t> starts{0};
    starts.reserve(rows_ + 1);
    for (uint64_t row = 0; row < rows_; ++row) {
      PENSTOCK_ASSIGN_OR_RETURN(uint64_t items, RowItems(dims + row * d_.rank));
      PENSTOCK_ASSIGN_OR_RETURN(items, Multiply(starts.back() + items, 1));
      starts.push_back(items);
    }
    Pins pins{bytes_.owner()};
    const std::byte* base = bytes_.data() + d_.values_offset;
    if (dtype_ == DType::kString) {
      PENSTOCK_ASSIGN_OR_RETURN(Buffer refs, StringRefs(starts.back()));
      base = refs.data();
      pins.push_back(refs.owner());
    } else {
      PENSTOCK_RETURN_IF_ERROR(CheckItemBytes(starts.back()));
    }
    Buffer data = Buffer::Allocate(rows_ * sizeof(void*));
    for (uint64_t row = 0; row < rows_; ++row) {
      data.MutableAs<const std::byte*>()[row] =
          base + starts[row] * ItemSize(dtype_);
    }
    return Column::Ragged(dtype_, d_.rank, rows_, std::move(data),
                          bytes_.Slice(d_.dims_offset, dims_bytes),
                          std::move(pins));
  }

  const Buffer& bytes_;
  const uint64_t rows_;
  const Descriptor& d_;
  DType dtype_ = DType::kInt64;
};

absl::StatusOr<std::vector<RowError>> DecodeErrors(const Buffer& bytes,
                                                   const Header& header) {
  std::vector<RowError> errors;
  if (header.errors_offset == 0) return errors;
  uint64_t at = header.errors_offset;
  for (uint64_t i = 0; i < header.errors; ++i) {
    ErrorHeader e;
    if (at > bytes.size() || bytes.size() - at < sizeof(e)) {
      return Damaged("an error lies outside it");
    }
    std::memcpy(&e, bytes.data() + at, sizeof(e));
    at += sizeof(e);
    if (e.row >= header.rows || e.size > bytes.size() - at || e.code == 0 ||
        e.code > 16 ||
        (!errors.empty() && static_cast<int64_t>(e.row) <= errors.back().row)) {
      return Damaged("an error row is malformed");
    }
    const auto* text = reinterpret_cast<const char*>(bytes.data() + at);
    errors.push_back({static_cast<int64_t>(e.row),
                      absl::Status(static_cast<absl::StatusCode>(e.code),
                                   absl::string_view(text, e.size))});
    at += RoundUp(e.size, 8);
  }
  return errors;
}

void Write(const Chunk& chunk, const Plan& plan, std::byte* out,
           absl::Span<const bool> apart = {}) {
  Header header{kMagic,
                static_cast<uint32_t>(chunk.columns.size()),
                static_cast<uint64_t>(chunk.rows),
                plan.bytes,
                plan.errors_offset,
                chunk.errors.size()};
  std::memcpy(out, &header, sizeof(header));
  std::byte* at = out + sizeof(header);
  // The gaps between buffers: equal chunks have equal bytes.
  for (auto [begin, end] : plan.gaps) std::memset(out + begin, 0, end - begin);
  for (size_t c = 0; c < chunk.columns.size(); ++c) {
    const Column& column = chunk.columns[c];
    const Descriptor& d = plan.descriptors[c];
    std::memcpy(at, &d, sizeof(d));
    at += sizeof(d);
    if (column.dtype() == DType::kString) {
      WriteStrings(column, d, out);
    } else if (apart.empty() || !apart[c]) {
      WriteItems(column, d, out);
    }
    if (!column.is_dense() && column.rank() > 0) {
      std::memcpy(out + d.dims_offset, column.dims().data(),
                  column.rows() * column.rank() * sizeof(int64_t));
    }
  }
  std::byte* error_at = out + plan.errors_offset;
  for (const RowError& error : chunk.errors) {
    const absl::string_view text = error.status.message();
    ErrorHeader e{static_cast<uint64_t>(error.row),
                  static_cast<uint32_t>(error.status.code()),
                  static_cast<uint32_t>(text.size())};
    std::memcpy(error_at, &e, sizeof(e));
    std::memset(error_at + sizeof(e), 0, RoundUp(text.size(), 8));
    std::copy(text.begin(), text.end(),
              reinterpret_cast<char*>(error_at + sizeof(e)));
    error_at += sizeof(e) + RoundUp(text.size(), 8);
  }
}

}  // namespace

size_t EncodedHeadSize(size_t columns) {
  return sizeof(Header) + columns * sizeof(Descriptor);
}

size_t EncodedSize(const Chunk& chunk) { return MakePlan(chunk).bytes; }

void Encode(const Chunk& chunk, std::byte* out) {
  Write(chunk, MakePlan(chunk), out);
}

std::optional<size_t> EncodeAround(const Chunk& chunk, std::byte* out,
                                   size_t values_end, size_t room) {
  const Plan plan = MakePlan(chunk, out, values_end);
  size_t first = values_end;
  for (const Descriptor& d : plan.descriptors) {
    first = std::min<size_t>(first, d.values_offset);
  }
  if (plan.bytes > room || EncodedHeadSize(chunk.columns.size()) > first) {
    return std::nullopt;
  }
  Write(chunk, plan, out);
  return plan.bytes;
}

size_t ApartBytes(const Chunk& chunk, size_t least_bytes) {
  size_t bytes = 0;
  for (const Column& column : chunk.columns) {
    if (IsApart(column, least_bytes)) bytes += Describe(column).values_bytes;
  }
  return bytes;
}

std::vector<Buffer> EncodeApart(const Chunk& chunk, size_t least_bytes) {
  absl::InlinedVector<bool, 8> apart;
  for (const Column& column : chunk.columns) {
    apart.push_back(IsApart(column, least_bytes));
  }
  Plan plan = MakePlan(chunk, nullptr, 0, apart);
  const size_t head_bytes = plan.bytes;
  std::vector<Buffer> parts(1);
  static constexpr std::byte kZeros[kAlignment] = {};
  const auto fill_up_to = [&](size_t multiple) {
    const size_t bytes = RoundUp(plan.bytes, multiple);
    if (bytes == plan.bytes) return;
    parts.emplace_back(nullptr, kZeros, bytes - plan.bytes);
    plan.bytes = bytes;
  };
  for (size_t c = 0; c < chunk.columns.size(); ++c) {
    if (!apart[c]) continue;
    Descriptor& d = plan.descriptors[c];
    fill_up_to(kAlignment);
    d.values_offset = plan.bytes;
    // Its values may lie in something that only its pins keep.
    const auto kept = std::make_shared<const Column>(chunk.columns[c]);
    parts.emplace_back(kept, kept->values().data(), d.values_bytes);
    plan.bytes += d.values_bytes;
  }
  fill_up_to(8);
  Buffer head = Buffer::Allocate(head_bytes);
  Write(chunk, plan, head.MutableAs<std::byte>(), apart);
  parts[0] = std::move(head);
  return parts;
}

std::optional<size_t> FindEncoded(const Chunk& chunk, const std::byte* at,
                                  size_t room) {
  const size_t head_size = EncodedHeadSize(chunk.columns.size());
  Header header;
  if (room < head_size || !chunk.errors.empty()) return std::nullopt;
  std::memcpy(&header, at, sizeof(header));
  if (header.magic != kMagic || header.columns != chunk.columns.size() ||
      header.rows != static_cast<uint64_t>(chunk.rows) || header.errors != 0 ||
      header.bytes < head_size || header.bytes > room) {
    return std::nullopt;
  }
  const std::byte* descriptor = at + sizeof(header);
  for (const Column& column : chunk.columns) {
    Descriptor d;
    std::memcpy(&d, descriptor, sizeof(d));
    descriptor += sizeof(d);
    if (!column.is_dense() || column.dtype() == DType::kString ||
        d.layout != 0 || d.dtype != static_cast<uint8_t>(column.dtype()) ||
        d.rank != column.rank() || d.values_bytes != column.values().size() ||
        d.values_offset > header.bytes ||
        d.values_bytes > header.bytes - d.values_offset ||
        at + d.values_offset != column.values().data() ||
        !std::equal(column.shape().begin(), column.shape().end(), d.dims)) {
      return std::nullopt;
    }
  }
  return header.bytes;
}

absl::StatusOr<Chunk> Decode(const Buffer& bytes) {
  Header header;
  if (bytes.size() < sizeof(header)) return Damaged("shorter than its header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic) return Damaged("no magic number");
  if (header.bytes != bytes.size()) return Damaged("another size than it says");
  if (header.rows > (1ULL << 40)) return Damaged("too many rows");
  if (header.columns > (bytes.size() - sizeof(header)) / sizeof(Descriptor)) {
    return Damaged("more columns than bytes");
  }
  Chunk chunk;
  chunk.rows = static_cast<int64_t>(header.rows);
  for (uint32_t c = 0; c < header.columns; ++c) {
    Descriptor d;
    std::memcpy(&d, bytes.data() + sizeof(header) + c * sizeof(d), sizeof(d));
    PENSTOCK_ASSIGN_OR_RETURN(Column column,
                              ColumnDecoder(bytes, header.rows, d).Decode());
    chunk.columns.push_back(std::move(column));
  }
  PENSTOCK_ASSIGN_OR_RETURN(chunk.errors, DecodeErrors(bytes, header));
  return chunk;
}

}  // namespace penstock
