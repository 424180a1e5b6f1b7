// Tensors as the bytes of TensorFlow's TensorProto, and back.
//
//   TensorProto       dtype = 1, tensor_shape = 2, tensor_content = 4, and for
//                     each type a list of values in place of the content
//   TensorShapeProto  dim = 2 (size = 1), repeated; unknown_rank = 3
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/encode.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/example_wire.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"
#include "penstock/functions/string_items.h"

namespace penstock::functions {
namespace {

// A type: TensorFlow's number of it, and the field of its list of values.
struct TensorType {
  DType dtype;
  uint64_t number;
  int values_field;
};

constexpr std::array<TensorType, 16> kTypes = {{
    {DType::kFloat32, 1, 5},
    {DType::kFloat64, 2, 6},
    {DType::kInt32, 3, 7},
    {DType::kUint8, 4, 7},
    {DType::kInt16, 5, 7},
    {DType::kInt8, 6, 7},
    {DType::kString, 7, 8},
    {DType::kComplex64, 8, 9},
    {DType::kInt64, 9, 10},
    {DType::kBool, 10, 11},
    {DType::kBfloat16, 14, 13},
    {DType::kUint16, 17, 7},
    {DType::kComplex128, 18, 12},
    {DType::kFloat16, 19, 13},
    {DType::kUint32, 22, 16},
    {DType::kUint64, 23, 17},
}};

const TensorType& TypeOf(DType dtype) {
  return *std::find_if(
      kTypes.begin(), kTypes.end(),
      [&](const TensorType& type) { return type.dtype == dtype; });
}

std::string NameOf(uint64_t number) {
  for (const TensorType& type : kTypes) {
    if (type.number == number) return std::string(Name(type.dtype));
  }
  return absl::StrCat("type ", number);
}

// ---- serialize_tensor

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) {
    out += static_cast<char>(value | 0x80);
  }
  out += static_cast<char>(value);
}

void AppendDelimited(int field, std::string_view bytes, std::string& out) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | 2, out);
  AppendVarint(bytes.size(), out);
  out += bytes;
}

std::string HeadOf(absl::Span<const int64_t> shape, DType dtype) {
  std::string dims;
  for (const int64_t size : shape) {
    std::string dim;
    if (size > 0) {
      dim += '\x08';
      AppendVarint(static_cast<uint64_t>(size), dim);
    }
    AppendDelimited(2, dim, dims);
  }
  std::string head = "\x08";
  AppendVarint(TypeOf(dtype).number, head);
  AppendDelimited(2, dims, head);
  return head;
}

absl::StatusOr<TensorSpec> InferSerialize(absl::Span<const ArgSpec>,
                                          const Attrs&) {
  return TensorSpec::Scalar(DType::kString);
}

absl::StatusOr<Column> EvalSerialize(absl::Span<const Arg> args, const Attrs&,
                                     const TensorSpec&, EvalContext& context) {
  const Column& x = *args[0].column;
  const int64_t rows = ResultRows(args, context);
  const auto blocks = ByteBlocks::Make();
  Buffer refs = Buffer::Allocate(rows * sizeof(StringRef));
  auto* ref = refs.MutableAs<StringRef>();
  std::string made;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t own = RowIndex(args[0], row);
    const int64_t items = x.RowItems(own);
    made = HeadOf(x.RowShape(own), x.dtype());
    if (x.dtype() == DType::kString) {
      for (int64_t i = 0; i < items; ++i) {
        AppendDelimited(8, x.Row<StringRef>(own)[i].view(), made);
      }
    } else if (items > 0) {
      AppendDelimited(4, {x.Row<char>(own), items * ItemSize(x.dtype())}, made);
    }
    ref[row] = blocks->Copy(made);
  }
  return Column::Dense(DType::kString, {}, rows, std::move(refs), {blocks});
}

// ---- parse_tensor

struct ParsedTensor {
  std::vector<int64_t> dims;
  // The items: where they lie, or made of a list of values.
  std::string_view content;
  std::string made;
  std::vector<StringRef> strings;
};

absl::Status Damaged() {
  return absl::InvalidArgumentError(
      "parse_tensor takes the bytes of a TensorProto; got others");
}

bool ReadShape(Wire shape, std::vector<int64_t>& dims) {
  while (!shape.is_done()) {
    const uint8_t tag = *shape.at;
    if (tag != DelimitedTag(2)) {
      // unknown_rank: a value has one.
      if (tag >> 3 == 3 || !SkipField(shape)) return false;
      continue;
    }
    ++shape.at;
    Wire dim;
    if (!ReadDelimited(shape, dim)) return false;
    uint64_t size = 0;
    while (!dim.is_done()) {
      if (*dim.at == 0x08) {
        ++dim.at;
        if (!ReadVarint(dim, size)) return false;
      } else if (!SkipField(dim)) {
        return false;
      }
    }
    if (size > INT64_MAX || dims.size() == kMaxRank) return false;
    dims.push_back(static_cast<int64_t>(size));
  }
  return true;
}

// Adds one value of a list of varints to the items.
void AppendInteger(DType dtype, uint64_t value, std::string& items) {
  if (dtype == DType::kBool) value = value != 0 ? 1 : 0;
  items.append(reinterpret_cast<const char*>(&value), ItemSize(dtype));
}

// Bytes of the numbers of a list that is no list of varints; 0 if it is one.
size_t FixedSize(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return 4;
    case DType::kFloat64:
    case DType::kComplex128:
      return 8;
    default:
      return 0;
  }
}

// Reads what stands behind the tag of the list of values, packed or not.
bool ReadValues(Wire& wire, int wire_type, DType dtype, ParsedTensor& tensor) {
  const size_t fixed = FixedSize(dtype);
  if (dtype == DType::kString) {
    Wire text;
    if (wire_type != 2 || !ReadDelimited(wire, text)) return false;
    tensor.strings.push_back(
        {reinterpret_cast<const char*>(text.at), text.left()});
    return true;
  }
  Wire list;
  if (wire_type == 2) {
    if (!ReadDelimited(wire, list)) return false;
  } else if (fixed != 0 && wire_type == (fixed == 4 ? 5 : 1)) {
    if (wire.left() < fixed) return false;
    list = {wire.at, wire.at + fixed};
    wire.at += fixed;
  } else if (fixed == 0 && wire_type == 0) {
    uint64_t value;
    if (!ReadVarint(wire, value)) return false;
    AppendInteger(dtype, value, tensor.made);
    return true;
  } else {
    return false;
  }
  if (fixed != 0) {
    if (list.left() % fixed != 0) return false;
    tensor.made.append(reinterpret_cast<const char*>(list.at), list.left());
    return true;
  }
  while (!list.is_done()) {
    uint64_t value;
    if (!ReadVarint(list, value)) return false;
    AppendInteger(dtype, value, tensor.made);
  }
  return true;
}

// As many strings as `tensor` has items: sizes, then bytes.
bool ReadStringContent(size_t count, ParsedTensor& tensor) {
  Wire wire = Wire::Of(tensor.content);
  if (count > wire.left()) return false;
  std::vector<uint64_t> sizes(count);
  for (uint64_t& size : sizes) {
    if (!ReadVarint(wire, size)) return false;
  }
  for (const uint64_t size : sizes) {
    if (size > wire.left()) return false;
    tensor.strings.push_back({reinterpret_cast<const char*>(wire.at), size});
    wire.at += size;
  }
  return wire.is_done();
}

// Fills up a list that is shorter than its tensor with its last value.
template <typename List, typename Item>
void FillUp(size_t count, const Item& zero, List& list) {
  const Item last = list.empty() ? zero : list.back();
  list.resize(std::min(list.size(), count));
  list.resize(count, last);
}

absl::Status FinishItems(DType dtype, ParsedTensor& tensor) {
  PENSTOCK_RETURN_IF_ERROR(CheckElementSize(tensor.dims, dtype));
  int64_t product = 1;  // also where a later dimension is 0
  for (const int64_t dim : tensor.dims) {
    if (__builtin_mul_overflow(product, dim, &product)) return Damaged();
  }
  const auto count = static_cast<size_t>(NumItems(tensor.dims));
  const size_t item_size = ItemSize(dtype);
  if (dtype == DType::kString) {
    if (!tensor.content.empty() && !ReadStringContent(count, tensor)) {
      return Damaged();
    }
    FillUp(count, StringRef{"", 0}, tensor.strings);
    return absl::OkStatus();
  }
  if (tensor.content.empty()) {
    if (tensor.made.size() % item_size != 0) return Damaged();
    std::string item = tensor.made.empty()
                           ? std::string(item_size, '\0')
                           : tensor.made.substr(tensor.made.size() - item_size);
    tensor.made.resize(std::min(tensor.made.size(), count * item_size));
    tensor.made.reserve(count * item_size);
    while (tensor.made.size() < count * item_size) tensor.made += item;
    tensor.content = tensor.made;
  }
  if (tensor.content.size() == count * item_size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a tensor of ", count, " items must have ",
                   count * item_size, " bytes; got ", tensor.content.size()));
}

absl::Status ParseTensor(std::string_view bytes, DType dtype,
                         ParsedTensor& tensor) {
  Wire wire = Wire::Of(bytes);
  const TensorType& type = TypeOf(dtype);
  uint64_t number = 0;
  while (!wire.is_done()) {
    const Wire before = wire;
    uint64_t tag;
    if (!ReadVarint(wire, tag)) return Damaged();
    const uint64_t field = tag >> 3;
    const int wire_type = static_cast<int>(tag & 7);
    Wire part;
    if (field == 1 && wire_type == 0) {
      if (!ReadVarint(wire, number)) return Damaged();
    } else if (field == 2 && wire_type == 2) {
      tensor.dims.clear();
      if (!ReadDelimited(wire, part) || !ReadShape(part, tensor.dims)) {
        return Damaged();
      }
    } else if (field == 4 && wire_type == 2) {
      if (!ReadDelimited(wire, part)) return Damaged();
      tensor.content = {reinterpret_cast<const char*>(part.at), part.left()};
    } else if (field == static_cast<uint64_t>(type.values_field)) {
      if (!ReadValues(wire, wire_type, dtype, tensor)) return Damaged();
    } else {
      wire = before;
      if (!SkipField(wire)) return Damaged();
    }
  }
  if (number != type.number) {
    return absl::InvalidArgumentError(
        absl::StrCat("parse_tensor must find a tensor of ",
                     std::string(Name(dtype)), "; got ", NameOf(number)));
  }
  return FinishItems(dtype, tensor);
}

absl::StatusOr<TensorSpec> InferParse(absl::Span<const ArgSpec> args,
                                      const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("parse_tensor", args[0]));
  PENSTOCK_RETURN_IF_ERROR(CheckRank("parse_tensor", args[0], 0));
  TensorSpec result;
  PENSTOCK_ASSIGN_OR_RETURN(result.dtype,
                            DTypeAttr(attrs, "out_type", DType::kFloat32));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Ints> shape,
                            AxisAttr(attrs, "shape"));
  if (!shape.has_value()) {
    result.shape = PartialShape::UnknownRank();
    return result;
  }
  if (shape->size() > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a value may have ", kMaxRank, " dimensions; got ", shape->size()));
  }
  PartialShape::Dims dims;
  for (const int64_t size : *shape) {
    dims.push_back(size < 0 ? std::nullopt : std::optional<int64_t>(size));
  }
  result.shape = PartialShape(std::move(dims));
  return result;
}

absl::StatusOr<Column> EvalParse(absl::Span<const Arg> args, const Attrs&,
                                 const TensorSpec& result,
                                 EvalContext& context) {
  const Column& x = *args[0].column;
  if (x.rank() != 0) {
    return absl::InvalidArgumentError("parse_tensor takes scalar strings");
  }
  const int64_t rows = ResultRows(args, context);
  std::vector<ParsedTensor> tensors(rows);
  std::vector<absl::Status> statuses(rows);
  int rank = result.shape.has_rank() ? result.shape.rank() : 0;
  for (int64_t row = 0; row < rows; ++row) {
    const StringRef bytes = *x.Row<StringRef>(RowIndex(args[0], row));
    statuses[row] = ParseTensor(bytes.view(), result.dtype, tensors[row]);
    if (statuses[row].ok() && !result.shape.has_rank()) {
      rank = std::max(rank, static_cast<int>(tensors[row].dims.size()));
    }
  }
  Pins pins = result.dtype == DType::kString ? StringPins(args) : Pins{};
  return MakeRows(
      result.dtype, rank, rows, /*has_one_shape=*/false, std::move(pins),
      context,
      [&](int64_t row, int64_t* dims) -> absl::Status {
        PENSTOCK_RETURN_IF_ERROR(statuses[row]);
        const std::vector<int64_t>& found = tensors[row].dims;
        const Shape shape(found.begin(), found.end());
        if (static_cast<int>(found.size()) != rank ||
            !result.shape.Accepts(shape)) {
          return absl::InvalidArgumentError(absl::StrCat(
              "parse_tensor must find a tensor of ",
              result.shape.has_rank() ? result.shape.ToString()
                                      : absl::StrCat("rank ", rank),
              "; got one of ",
              PartialShape(absl::MakeConstSpan(shape)).ToString()));
        }
        std::copy(found.begin(), found.end(), dims);
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t>, std::byte* out) {
        const ParsedTensor& tensor = tensors[row];
        if (result.dtype == DType::kString) {
          std::copy(tensor.strings.begin(), tensor.strings.end(),
                    reinterpret_cast<StringRef*>(out));
          return;
        }
        if (!tensor.content.empty()) {
          std::memcpy(out, tensor.content.data(), tensor.content.size());
        }
        if (result.dtype != DType::kBool) return;
        // Any other byte would be no bool.
        for (size_t i = 0; i < tensor.content.size(); ++i) {
          out[i] = std::byte{out[i] != std::byte{0}};
        }
      });
}

}  // namespace

std::vector<Function> TensorProtoFunctions() {
  return {
      {.name = "io.serialize_tensor",
       .params = {{"tensor", ParamKind::kTensor, "", "Any tensor."}},
       .doc = "The bytes of a tensor, shape and dtype included.",
       .example =
           ">>> ps.io.serialize_tensor(np.array([1, 2], np.int8))\n"
           "b'\\x08\\x06\\x12\\x04\\x12\\x02\\x08\\x02\"\\x02\\x01\\x02'",
       .infer = InferSerialize,
       .eval = EvalSerialize},
      {.name = "io.parse_tensor",
       .params = {{"serialized", ParamKind::kTensor, "",
                   "What serialize_tensor gave, or any TensorProto; a scalar."},
                  {"out_type", ParamKind::kDType, "", "Of the tensor."},
                  {"shape", ParamKind::kAxis, "None",
                   "The sizes that the tensor must have, -1 for any; left "
                   "out, not even its rank is known before."}},
       .doc = "The tensor that serialize_tensor was given.",
       .example = ">>> data = ps.io.serialize_tensor([[1.5, 2.5]])\n"
                  ">>> ps.io.parse_tensor(data, ps.float64)\n"
                  "array([[1.5, 2.5]])",
       .infer = InferParse,
       .eval = EvalParse},
  };
}

}  // namespace penstock::functions
