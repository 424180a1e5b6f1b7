#include "penstock/data/spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock {
namespace {

absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

PartialShape PartialShape::UnknownRank() {
  PartialShape shape;
  shape.has_rank_ = false;
  return shape;
}

bool PartialShape::is_fully_known() const {
  return has_rank_ && std::all_of(dims_.begin(), dims_.end(),
                                  [](auto dim) { return dim.has_value(); });
}

Shape PartialShape::ToShape() const {
  Shape shape;
  for (std::optional<int64_t> dim : dims_) shape.push_back(*dim);
  return shape;
}

bool PartialShape::Accepts(absl::Span<const int64_t> shape) const {
  if (!has_rank_) return true;
  if (shape.size() != dims_.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (dims_[i].has_value() && *dims_[i] != shape[i]) return false;
  }
  return true;
}

bool PartialShape::Accepts(const PartialShape& other) const {
  if (!has_rank_) return true;
  if (!other.has_rank_ || other.dims_.size() != dims_.size()) return false;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (dims_[i].has_value() && dims_[i] != other.dims_[i]) return false;
  }
  return true;
}

PartialShape PartialShape::Prepend(std::optional<int64_t> dim) const {
  if (!has_rank_) return *this;
  Dims dims{dim};
  dims.insert(dims.end(), dims_.begin(), dims_.end());
  return PartialShape(std::move(dims));
}

PartialShape PartialShape::DropFirst() const {
  if (!has_rank_) return *this;
  return PartialShape(Dims(dims_.begin() + 1, dims_.end()));
}

std::string PartialShape::ToString() const {
  if (!has_rank_) return "<unknown rank>";
  std::vector<std::string> parts;
  for (std::optional<int64_t> dim : dims_) {
    parts.push_back(dim.has_value() ? absl::StrCat(*dim) : "None");
  }
  return absl::StrCat("(", absl::StrJoin(parts, ", "),
                      parts.size() == 1 ? ",)" : ")");
}

PartialShape Relax(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) {
    return PartialShape::UnknownRank();
  }
  PartialShape::Dims dims = a.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != b.dims()[i]) dims[i] = std::nullopt;
  }
  return PartialShape(std::move(dims));
}

TensorSpec TensorSpec::Scalar(DType dtype) {
  TensorSpec spec;
  spec.dtype = dtype;
  return spec;
}

std::string TensorSpec::ToString() const {
  return absl::StrCat(View(Name(dtype)), shape.ToString());
}

ElementSpec ElementSpec::Tensor(TensorSpec spec) {
  ElementSpec element;
  element.kind = Kind::kTensor;
  element.tensor = std::move(spec);
  return element;
}

ElementSpec ElementSpec::Tuple(std::vector<ElementSpec> children) {
  ElementSpec element;
  element.children = std::move(children);
  return element;
}

ElementSpec ElementSpec::Dataset(ElementSpec element) {
  ElementSpec dataset;
  dataset.kind = Kind::kDataset;
  dataset.children.push_back(std::move(element));
  return dataset;
}

bool ElementSpec::has_dataset() const {
  return kind == Kind::kDataset || std::any_of(children.begin(), children.end(),
                                               [](const ElementSpec& child) {
                                                 return child.has_dataset();
                                               });
}

namespace {

void FlattenInto(const ElementSpec& spec, std::vector<TensorSpec>& leaves) {
  if (spec.kind == ElementSpec::Kind::kDataset) {
    leaves.emplace_back();
    leaves.back().dtype = DType::kString;
    return;
  }
  if (spec.kind == ElementSpec::Kind::kTensor) leaves.push_back(spec.tensor);
  for (const ElementSpec& child : spec.children) FlattenInto(child, leaves);
}

void Replace(ElementSpec& spec, absl::Span<const TensorSpec>& leaves) {
  if (spec.kind == ElementSpec::Kind::kDataset) {
    leaves.remove_prefix(1);
    return;
  }
  if (spec.kind == ElementSpec::Kind::kTensor) {
    spec.tensor = leaves.front();
    leaves.remove_prefix(1);
  }
  for (ElementSpec& child : spec.children) Replace(child, leaves);
}

}  // namespace

std::vector<TensorSpec> ElementSpec::Flatten() const {
  std::vector<TensorSpec> leaves;
  FlattenInto(*this, leaves);
  return leaves;
}

ElementSpec ElementSpec::WithLeaves(absl::Span<const TensorSpec> leaves) const {
  ElementSpec spec = *this;
  Replace(spec, leaves);
  return spec;
}

std::string ElementSpec::ToString() const {
  std::vector<std::string> parts;
  for (size_t i = 0; i < children.size(); ++i) {
    std::string text = children[i].ToString();
    if (kind == Kind::kDict) text = absl::StrCat("'", keys[i], "': ", text);
    if (kind == Kind::kNamed) text = absl::StrCat(keys[i], "=", text);
    parts.push_back(std::move(text));
  }
  const std::string list = absl::StrJoin(parts, ", ");
  switch (kind) {
    case Kind::kTensor:
      return tensor.ToString();
    case Kind::kNone:
      return "None";
    case Kind::kTuple:
      return absl::StrCat("(", list, parts.size() == 1 ? ",)" : ")");
    case Kind::kDict:
      return absl::StrCat("{", list, "}");
    case Kind::kNamed:
      return absl::StrCat(type_name, "(", list, ")");
    case Kind::kDataset:
      return absl::StrCat("Dataset(", list, ")");
  }
  return "?";
}

bool IsRagged(const ElementSpec& spec) {
  return spec.kind == ElementSpec::Kind::kNamed &&
         spec.type_name == kRaggedType && spec.children.size() == 2 &&
         (IsRagged(spec.children[0]) ||
          spec.children[0].kind == ElementSpec::Kind::kTensor) &&
         spec.children[1].kind == ElementSpec::Kind::kTensor;
}

bool IsSparse(const ElementSpec& spec) {
  return spec.kind == ElementSpec::Kind::kNamed &&
         spec.type_name == kSparseType && spec.children.size() == 3 &&
         std::all_of(spec.children.begin(), spec.children.end(),
                     [](const ElementSpec& child) {
                       return child.kind == ElementSpec::Kind::kTensor;
                     });
}

bool SameStructure(const ElementSpec& a, const ElementSpec& b) {
  if (a.kind != b.kind || a.children.size() != b.children.size() ||
      a.keys != b.keys) {
    return false;
  }
  if (a.kind == ElementSpec::Kind::kNamed && a.type_name != b.type_name) {
    return false;
  }
  // What a dataset's elements are is part of the structure, shapes included.
  if (a.kind == ElementSpec::Kind::kDataset) {
    return a.children[0] == b.children[0];
  }
  for (size_t i = 0; i < a.children.size(); ++i) {
    if (!SameStructure(a.children[i], b.children[i])) return false;
  }
  return true;
}

bool operator==(const ElementSpec& a, const ElementSpec& b) {
  return SameStructure(a, b) && a.Flatten() == b.Flatten();
}

absl::Status CheckColumns(const Chunk& chunk,
                          absl::Span<const TensorSpec> leaves) {
  if (chunk.columns.size() != leaves.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ", leaves.size(), " components; got ", chunk.columns.size()));
  }
  for (size_t c = 0; c < leaves.size(); ++c) {
    const Column& column = chunk.columns[c];
    if (column.dtype() != leaves[c].dtype) {
      return absl::InvalidArgumentError(absl::StrCat(
          "component ", c, ": expected ", View(Name(leaves[c].dtype)), "; got ",
          View(Name(column.dtype()))));
    }
    if (column.is_dense() && leaves[c].shape.Accepts(column.shape())) continue;
    for (int64_t row = 0; row < column.rows(); ++row) {
      if (ErrorAt(chunk, row) != nullptr) continue;
      if (leaves[c].shape.Accepts(column.RowShape(row))) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "component ", c, ": expected shape ", leaves[c].shape.ToString(),
          "; got ", ToString(column.RowShape(row))));
    }
  }
  return absl::OkStatus();
}

std::vector<Column> PlaceholderColumns(absl::Span<const TensorSpec> leaves,
                                       int64_t rows) {
  std::vector<Column> columns;
  for (const TensorSpec& leaf : leaves) {
    Shape shape;
    if (leaf.shape.has_rank()) {
      for (std::optional<int64_t> dim : leaf.shape.dims()) {
        shape.push_back(dim.value_or(0));
      }
    }
    columns.push_back(ZeroColumn(leaf.dtype, shape, rows));
  }
  return columns;
}

}  // namespace penstock
