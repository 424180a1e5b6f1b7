#include "penstock/functions/string_items.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/promote.h"

namespace penstock::functions {

std::string_view StripSpace(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

absl::Status CheckStrings(std::string_view function, const ArgSpec& arg) {
  if (arg.spec.dtype == DType::kString) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Text(function), " needs strings; got ", arg.spec.ToString()));
}

absl::Status CheckRank(std::string_view function, const ArgSpec& arg,
                       int rank) {
  const PartialShape& shape = arg.spec.shape;
  if (!shape.has_rank() || shape.rank() == rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Text(function), " needs a value of rank ", rank, "; got ",
                   arg.spec.ToString()));
}

absl::StatusOr<std::string_view> TextAttrOr(const Attrs& attrs,
                                            std::string_view name,
                                            std::string_view otherwise) {
  const auto found = attrs.find(std::string(name));
  if (found == attrs.end() || std::holds_alternative<None>(found->second)) {
    return otherwise;
  }
  return TextAttr(attrs, name);
}

absl::Status SplitTooLong(uint64_t size) {
  return absl::InvalidArgumentError(absl::StrCat(
      "a split takes strings of ", kMaxSplitBytes, " bytes; got ", size));
}

std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 80;
  const bool is_cut = text.size() > kShown;
  return absl::StrCat("'", absl::CHexEscape(Text(text.substr(0, kShown))), "'",
                      is_cut ? "…" : "");
}

void ByteBlocks::Grow(size_t size) {
  Buffer block = Buffer::Allocate(std::max(size, block_bytes_));
  next_ = block.MutableAs<char>();
  left_ = block.size();
  blocks_.push_back(std::move(block));
  constexpr size_t kMaxBlockBytes = 256 << 10;
  block_bytes_ = std::min(block_bytes_ * 4, kMaxBlockBytes);
}

Column VectorRows(DType dtype, Buffer items, absl::Span<const size_t> ends,
                  Pins pins) {
  const int64_t rows = static_cast<int64_t>(ends.size());
  const size_t size = ItemSize(dtype);
  Buffer pointers = Buffer::Allocate(rows * sizeof(void*));
  Buffer dims = Buffer::Allocate(rows * sizeof(int64_t));
  const std::byte** pointer = pointers.MutableAs<const std::byte*>();
  int64_t* dim = dims.MutableAs<int64_t>();
  bool has_one_shape = rows > 0;
  size_t begin = 0;
  for (int64_t row = 0; row < rows; ++row) {
    // No row, not even an empty one, points nowhere.
    pointer[row] =
        items.data() == nullptr ? kZeroItem : items.data() + begin * size;
    dim[row] = static_cast<int64_t>(ends[row] - begin);
    has_one_shape = has_one_shape && dim[row] == dim[0];
    begin = ends[row];
  }
  if (has_one_shape) {
    return Column::Dense(dtype, {dim[0]}, rows, std::move(items),
                         std::move(pins));
  }
  pins.push_back(items.owner());
  return Column::Ragged(dtype, 1, rows, std::move(pointers), std::move(dims),
                        std::move(pins));
}

std::vector<TensorSpec> RaggedSpecs(DType dtype, const ArgSpec& x) {
  const PartialShape unknown(PartialShape::Dims{std::nullopt});
  PartialShape splits = unknown;
  if (x.spec.shape.has_rank() && x.spec.shape.rank() == 1 &&
      x.spec.shape.dims()[0]) {
    splits = PartialShape(PartialShape::Dims{*x.spec.shape.dims()[0] + 1});
  }
  return {{dtype, unknown}, {DType::kInt64, splits}};
}

}  // namespace penstock::functions
