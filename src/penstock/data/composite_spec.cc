#include <algorithm>
#include <utility>

#include "penstock/base/status.h"
#include "penstock/data/composite.h"

namespace penstock {
namespace {

void AddParts(const ElementSpec& spec, int& columns, std::vector<Part>& parts) {
  const bool is_composite = IsComposite(spec);
  if (spec.kind == ElementSpec::Kind::kTensor ||
      spec.kind == ElementSpec::Kind::kDataset || is_composite) {
    Part part;
    part.first = columns;
    part.columns = static_cast<int>(spec.Flatten().size());
    if (is_composite) {
      part.kind = IsRagged(spec) ? Part::Kind::kRagged : Part::Kind::kSparse;
    }
    columns += part.columns;
    parts.push_back(part);
    return;
  }
  for (const ElementSpec& child : spec.children) {
    AddParts(child, columns, parts);
  }
}

PartialShape WithFirst(const PartialShape& shape,
                       std::optional<int64_t> first) {
  if (!shape.has_rank() || shape.rank() == 0) return shape;
  return shape.DropFirst().Prepend(first);
}

// A ragged value of more rows: what its tensors have along their first
// dimension is not known any more.
void Loosen(ElementSpec& spec) {
  if (spec.kind == ElementSpec::Kind::kTensor) {
    spec.tensor.shape = WithFirst(spec.tensor.shape, std::nullopt);
    return;
  }
  for (ElementSpec& child : spec.children) Loosen(child);
}

void AddLast(PartialShape& shape, int64_t more) {
  if (!shape.has_rank() || shape.rank() == 0) return;
  PartialShape::Dims dims = shape.dims();
  if (dims.back().has_value()) *dims.back() += more;
  shape = PartialShape(std::move(dims));
}

}  // namespace

std::vector<Part> PartsOf(const ElementSpec& spec) {
  std::vector<Part> parts;
  int columns = 0;
  AddParts(spec, columns, parts);
  return parts;
}

ElementSpec RaggedOf(ElementSpec values, DType splits,
                     std::optional<int64_t> num_splits) {
  ElementSpec spec;
  spec.kind = ElementSpec::Kind::kNamed;
  spec.type_name = kRaggedType;
  spec.keys = {"values", "row_splits"};
  TensorSpec leaf = TensorSpec::Scalar(splits);
  leaf.shape = PartialShape(PartialShape::Dims{num_splits});
  spec.children.push_back(std::move(values));
  spec.children.push_back(ElementSpec::Tensor(std::move(leaf)));
  return spec;
}

ElementSpec SparseOf(DType values, std::optional<int64_t> rank) {
  ElementSpec spec;
  spec.kind = ElementSpec::Kind::kNamed;
  spec.type_name = kSparseType;
  spec.keys = {"indices", "values", "dense_shape"};
  TensorSpec leaf = TensorSpec::Scalar(DType::kInt64);
  leaf.shape = PartialShape(PartialShape::Dims{std::nullopt, rank});
  spec.children.push_back(ElementSpec::Tensor(leaf));
  leaf.dtype = values;
  leaf.shape = PartialShape(PartialShape::Dims{std::nullopt});
  spec.children.push_back(ElementSpec::Tensor(leaf));
  leaf.dtype = DType::kInt64;
  leaf.shape = PartialShape(PartialShape::Dims{rank});
  spec.children.push_back(ElementSpec::Tensor(leaf));
  return spec;
}

int RaggedLevels(const PartialShape& shape) {
  int levels = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    if (!shape.dims()[d].has_value()) levels = d + 1;
  }
  return levels;
}

bool HasComposite(const ElementSpec& spec) {
  return IsComposite(spec) ||
         std::any_of(spec.children.begin(), spec.children.end(), HasComposite);
}

ElementSpec Batched(const ElementSpec& spec, std::optional<int64_t> dimension) {
  ElementSpec batched = spec;
  if (IsRagged(spec)) {
    Loosen(batched);
    ElementSpec outer = spec;
    outer.children[1].tensor.shape = PartialShape(PartialShape::Dims{
        dimension.has_value() ? std::optional<int64_t>(*dimension + 1)
                              : std::nullopt});
    outer.children[0] = std::move(batched);
    return outer;
  }
  if (IsSparse(spec)) {
    for (int i = 0; i < 2; ++i) {
      TensorSpec& leaf = batched.children[i].tensor;
      leaf.shape = WithFirst(leaf.shape, std::nullopt);
    }
    AddLast(batched.children[0].tensor.shape, 1);
    AddLast(batched.children[2].tensor.shape, 1);
    return batched;
  }
  if (spec.kind == ElementSpec::Kind::kTensor) {
    batched.tensor.shape = spec.tensor.shape.Prepend(dimension);
    return batched;
  }
  for (ElementSpec& child : batched.children) child = Batched(child, dimension);
  return batched;
}

std::vector<Part> RowPartsOf(const ElementSpec& spec) {
  const std::vector<TensorSpec> leaves = spec.Flatten();
  std::vector<Part> parts = PartsOf(spec);
  int columns = 0;
  for (Part& part : parts) {
    if (part.kind == Part::Kind::kRagged && --part.columns == 1) {
      part.kind = Part::Kind::kRaggedRow;
      part.splits = leaves[part.first + 1].dtype;
    }
    part.first = std::exchange(columns, columns + part.columns);
  }
  return parts;
}

absl::StatusOr<ElementSpec> Rebatched(const ElementSpec& spec,
                                      std::optional<int64_t> dimension) {
  if (IsRagged(spec) && !IsRagged(spec.children[0])) {
    ElementSpec values = spec.children[0];
    Loosen(values);
    return RaggedOf(std::move(values), spec.children[1].tensor.dtype,
                    dimension.has_value()
                        ? std::optional<int64_t>(*dimension + 1)
                        : std::nullopt);
  }
  if (IsComposite(spec) || spec.kind == ElementSpec::Kind::kTensor) {
    PENSTOCK_ASSIGN_OR_RETURN(const ElementSpec row, Unbatched(spec));
    return Batched(row, dimension);
  }
  ElementSpec batched = spec;
  for (ElementSpec& child : batched.children) {
    PENSTOCK_ASSIGN_OR_RETURN(child, Rebatched(child, dimension));
  }
  return batched;
}

absl::StatusOr<ElementSpec> Unbatched(const ElementSpec& spec) {
  if (IsRagged(spec)) {
    ElementSpec inner = spec.children[0];
    Loosen(inner);
    return inner;
  }
  ElementSpec element = spec;
  if (IsSparse(spec)) {
    for (int i = 0; i < 2; ++i) {
      TensorSpec& leaf = element.children[i].tensor;
      leaf.shape = WithFirst(leaf.shape, std::nullopt);
    }
    AddLast(element.children[0].tensor.shape, -1);
    AddLast(element.children[2].tensor.shape, -1);
    return element;
  }
  if (spec.kind == ElementSpec::Kind::kTensor) {
    if (spec.tensor.shape.has_rank() && spec.tensor.shape.rank() == 0) {
      return absl::InvalidArgumentError(
          "every component must have at least one dimension; got a scalar");
    }
    element.tensor.shape = spec.tensor.shape.DropFirst();
    return element;
  }
  for (ElementSpec& child : element.children) {
    PENSTOCK_ASSIGN_OR_RETURN(child, Unbatched(child));
  }
  return element;
}

}  // namespace penstock
