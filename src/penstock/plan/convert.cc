#include "penstock/plan/convert.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/encode.h"

namespace penstock::plan {
namespace {

using Kind = penstock::ElementSpec::Kind;

absl::StatusOr<penstock::DType> CheckedDType(int dtype) {
  if (IsDType(dtype)) return static_cast<penstock::DType>(dtype);
  return absl::InvalidArgumentError(
      absl::StrCat("dtype must be one of the known ones; got number ", dtype));
}

// Known dimensions alone decide, those of size 0 counting as 1, so that no
// later product of some of the dimensions overflows.
absl::Status CheckSize(penstock::DType dtype, absl::Span<const int64_t> dims) {
  int64_t room = kMaxStaticBytes / static_cast<int64_t>(ItemSize(dtype));
  for (int64_t dim : dims) room /= std::max<int64_t>(dim, 1);
  if (room > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a component must take less than 2^47 bytes; got shape ",
                   penstock::ToString(dims)));
}

absl::Status CheckLeaf(const penstock::TensorSpec& spec) {
  if (!spec.shape.has_rank()) return absl::OkStatus();
  if (spec.shape.rank() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("a component must have at most ", kMaxRank,
                     " dimensions; got ", spec.shape.ToString()));
  }
  std::vector<int64_t> known;
  for (std::optional<int64_t> dim : spec.shape.dims()) {
    known.push_back(dim.value_or(1));
  }
  return CheckSize(spec.dtype, known);
}

absl::Status TooDeep() {
  return absl::InvalidArgumentError(absl::StrCat(
      "structures must be nested at most ", kMaxSpecDepth, " deep; got more"));
}

absl::Status CheckSpecAt(const penstock::ElementSpec& spec, int depth) {
  if (depth > kMaxSpecDepth) return TooDeep();
  if (spec.kind == Kind::kTensor) return CheckLeaf(spec.tensor);
  for (const penstock::ElementSpec& child : spec.children) {
    PENSTOCK_RETURN_IF_ERROR(CheckSpecAt(child, depth + 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<penstock::ElementSpec> FromProtoAt(const ElementSpec& spec,
                                                  int depth);

absl::StatusOr<std::vector<penstock::ElementSpec>> Children(
    const google::protobuf::RepeatedPtrField<ElementSpec>& items, int depth) {
  std::vector<penstock::ElementSpec> children;
  children.reserve(items.size());
  for (const ElementSpec& item : items) {
    PENSTOCK_ASSIGN_OR_RETURN(children.emplace_back(),
                              FromProtoAt(item, depth + 1));
  }
  return children;
}

absl::StatusOr<std::vector<int>> DictOrder(const ElementSpec::Dict& dict) {
  std::vector<int> order(dict.order().begin(), dict.order().end());
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool is_permutation = sorted.size() == static_cast<size_t>(dict.keys_size());
  for (size_t i = 0; is_permutation && i < sorted.size(); ++i) {
    is_permutation = sorted[i] == static_cast<int>(i);
  }
  if (!order.empty() && !is_permutation) {
    return absl::InvalidArgumentError(
        "the order of a dict must name each of its keys once");
  }
  return order;
}

absl::StatusOr<penstock::ElementSpec> FromDict(const ElementSpec::Dict& dict,
                                               int depth) {
  if (dict.keys_size() != dict.values_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a dict must have one value per key; got ",
                     dict.keys_size(), " keys and ", dict.values_size()));
  }
  for (int i = 1; i < dict.keys_size(); ++i) {
    if (dict.keys(i - 1) < dict.keys(i)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the keys of a dict must be sorted and differ; got '",
                     dict.keys(i - 1), "' before '", dict.keys(i), "'"));
  }
  penstock::ElementSpec result;
  result.kind = Kind::kDict;
  result.keys.assign(dict.keys().begin(), dict.keys().end());
  PENSTOCK_ASSIGN_OR_RETURN(result.order, DictOrder(dict));
  PENSTOCK_ASSIGN_OR_RETURN(result.children, Children(dict.values(), depth));
  return result;
}

absl::StatusOr<penstock::ElementSpec> FromNamed(const ElementSpec::Named& named,
                                                int depth) {
  if (named.fields_size() != named.values_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a named structure must have one value per field; got ",
                     named.fields_size(), " fields and ", named.values_size()));
  }
  penstock::ElementSpec result;
  result.kind = Kind::kNamed;
  result.type_name = named.type_name();
  result.keys.assign(named.fields().begin(), named.fields().end());
  PENSTOCK_ASSIGN_OR_RETURN(result.children, Children(named.values(), depth));
  return result;
}

absl::StatusOr<penstock::ElementSpec> FromProtoAt(const ElementSpec& spec,
                                                  int depth) {
  if (depth > kMaxSpecDepth) return TooDeep();
  penstock::ElementSpec result;
  switch (spec.kind_case()) {
    case ElementSpec::kTensor: {
      result.kind = Kind::kTensor;
      PENSTOCK_ASSIGN_OR_RETURN(result.tensor, FromProto(spec.tensor()));
      return result;
    }
    case ElementSpec::kTuple: {
      PENSTOCK_ASSIGN_OR_RETURN(result.children,
                                Children(spec.tuple().items(), depth));
      return result;
    }
    case ElementSpec::kDict:
      return FromDict(spec.dict(), depth);
    case ElementSpec::kNamed:
      return FromNamed(spec.named(), depth);
    case ElementSpec::kNone:
      result.kind = Kind::kNone;
      return result;
    case ElementSpec::kDataset: {
      PENSTOCK_ASSIGN_OR_RETURN(
          penstock::ElementSpec element,
          FromProtoAt(spec.dataset().element(), depth + 1));
      return penstock::ElementSpec::Dataset(std::move(element));
    }
    case ElementSpec::KIND_NOT_SET:
      return absl::InvalidArgumentError(
          "a structure must be a tensor, tuple, dict, named tuple, dataset or "
          "None; got nothing");
  }
  return absl::InternalError("not a kind of structure");
}

absl::StatusOr<penstock::Column> StringsFromProto(const Tensor& tensor,
                                                  penstock::Shape shape) {
  if (tensor.strings_size() != NumItems(shape) || !tensor.data().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a constant of shape ", penstock::ToString(shape), " must have ",
        NumItems(shape), " strings; got ", tensor.strings_size()));
  }
  std::vector<std::string_view> views(tensor.strings().begin(),
                                      tensor.strings().end());
  return MakeStringColumn(views).Reshape(1, std::move(shape));
}

}  // namespace

absl::Status CheckSpec(const penstock::ElementSpec& spec) {
  return CheckSpecAt(spec, 0);
}

absl::StatusOr<penstock::PartialShape> FromProto(const PartialShape& shape) {
  if (shape.unknown_rank()) {
    if (shape.dims().empty()) return penstock::PartialShape::UnknownRank();
    return absl::InvalidArgumentError(
        "a shape of unknown rank must have no dimensions");
  }
  if (shape.dims_size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shape must have at most ", kMaxRank,
                     " dimensions; got ", shape.dims_size()));
  }
  penstock::PartialShape::Dims dims;
  for (const PartialShape::Dim& dim : shape.dims()) {
    if (dim.has_size() && dim.size() < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a dimension must be at least 0, or left out if unknown; got ",
          dim.size()));
    }
    dims.push_back(dim.has_size() ? std::optional<int64_t>(dim.size())
                                  : std::nullopt);
  }
  return penstock::PartialShape(std::move(dims));
}

absl::StatusOr<penstock::TensorSpec> FromProto(const TensorSpec& spec) {
  penstock::TensorSpec result;
  PENSTOCK_ASSIGN_OR_RETURN(result.dtype, CheckedDType(spec.dtype()));
  PENSTOCK_ASSIGN_OR_RETURN(result.shape, FromProto(spec.shape()));
  PENSTOCK_RETURN_IF_ERROR(CheckLeaf(result));
  return result;
}

absl::StatusOr<penstock::ElementSpec> FromProto(const ElementSpec& spec) {
  return FromProtoAt(spec, 0);
}

absl::StatusOr<penstock::Column> FromProto(const Tensor& tensor) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::DType dtype,
                            CheckedDType(tensor.dtype()));
  if (tensor.shape_size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("a constant must have at most ", kMaxRank,
                     " dimensions; got ", tensor.shape_size()));
  }
  penstock::Shape shape(tensor.shape().begin(), tensor.shape().end());
  for (int64_t dim : shape) {
    if (dim >= 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a constant's dimensions must be at least 0; got ",
                     penstock::ToString(shape)));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckSize(dtype, shape));
  if (dtype == penstock::DType::kString) {
    return StringsFromProto(tensor, std::move(shape));
  }

  const std::string& data = tensor.data();
  const uint64_t want = NumItems(shape) * ItemSize(dtype);
  if (data.size() != want || tensor.strings_size() > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a constant of shape ", penstock::ToString(shape),
                     " must have ", want, " bytes; got ", data.size()));
  }
  // Any other byte in a bool is undefined behaviour where it is read.
  if (dtype == penstock::DType::kBool &&
      std::any_of(data.begin(), data.end(),
                  [](unsigned char c) { return c > 1; })) {
    return absl::InvalidArgumentError(
        "a constant of dtype bool must have bytes 0 and 1 alone");
  }
  Buffer values = Buffer::Allocate(data.size());
  if (!data.empty()) {
    std::memcpy(values.MutableAs<char>(), data.data(), data.size());
  }
  return Column::Dense(dtype, std::move(shape), 1, std::move(values));
}

PartialShape ToProto(const penstock::PartialShape& shape) {
  PartialShape result;
  result.set_unknown_rank(!shape.has_rank());
  if (!shape.has_rank()) return result;
  for (std::optional<int64_t> dim : shape.dims()) {
    PartialShape::Dim* out = result.add_dims();
    if (dim.has_value()) out->set_size(*dim);
  }
  return result;
}

TensorSpec ToProto(const penstock::TensorSpec& spec) {
  TensorSpec result;
  result.set_dtype(static_cast<DType>(spec.dtype));
  *result.mutable_shape() = ToProto(spec.shape);
  return result;
}

ElementSpec ToProto(const penstock::ElementSpec& spec) {
  ElementSpec result;
  switch (spec.kind) {
    case Kind::kTensor:
      *result.mutable_tensor() = ToProto(spec.tensor);
      break;
    case Kind::kTuple:
      result.mutable_tuple();
      for (const penstock::ElementSpec& child : spec.children) {
        *result.mutable_tuple()->add_items() = ToProto(child);
      }
      break;
    case Kind::kDict:
      result.mutable_dict();
      for (size_t i = 0; i < spec.children.size(); ++i) {
        result.mutable_dict()->add_keys(spec.keys[i]);
        *result.mutable_dict()->add_values() = ToProto(spec.children[i]);
      }
      for (int position : spec.order)
        result.mutable_dict()->add_order(position);
      break;
    case Kind::kNamed:
      result.mutable_named()->set_type_name(spec.type_name);
      for (size_t i = 0; i < spec.children.size(); ++i) {
        result.mutable_named()->add_fields(spec.keys[i]);
        *result.mutable_named()->add_values() = ToProto(spec.children[i]);
      }
      break;
    case Kind::kNone:
      result.mutable_none();
      break;
    case Kind::kDataset:
      *result.mutable_dataset()->mutable_element() = ToProto(spec.children[0]);
      break;
  }
  return result;
}

}  // namespace penstock::plan
