#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/composite.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/expect.h"
#include "penstock/plan/infer.h"

namespace penstock::plan::infer {
namespace {

using Leaves = std::vector<penstock::TensorSpec>;

// Datasets inside elements cannot be stacked.
absl::Status NoDatasets(absl::string_view what, const Place& place) {
  if (!place.inputs[0].has_dataset()) return absl::OkStatus();
  return TypeError(absl::StrCat(
      what, " takes elements of tensors; got ", place.inputs[0].ToString(),
      "\n  Read the datasets inside the elements first, with flat_map()."));
}

absl::Status NoComposites(absl::string_view what, const Place& place) {
  if (!HasComposite(place.inputs[0])) return absl::OkStatus();
  return TypeError(absl::StrCat(what, " takes elements of plain tensors; got ",
                                place.inputs[0].ToString()));
}

// CommonFirstDimension of the components; of ragged and sparse ones, nobody
// knows it before the value.
absl::StatusOr<std::optional<int64_t>> FirstDimensionOf(
    absl::string_view what, const penstock::ElementSpec& spec) {
  const Leaves leaves = spec.Flatten();
  Leaves tensors;
  for (const Part& part : PartsOf(spec)) {
    if (part.kind == Part::Kind::kTensor) tensors.push_back(leaves[part.first]);
  }
  if (tensors.empty() && !leaves.empty()) return std::nullopt;
  return CommonFirstDimension(what, tensors);
}

// What a ragged batch has in place of each tensor.
absl::Status ToRagged(penstock::ElementSpec& spec, penstock::DType splits,
                      std::optional<int64_t> dimension) {
  if (spec.kind != penstock::ElementSpec::Kind::kTensor) {
    for (penstock::ElementSpec& child : spec.children) {
      PENSTOCK_RETURN_IF_ERROR(ToRagged(child, splits, dimension));
    }
    return absl::OkStatus();
  }
  if (!spec.tensor.shape.has_rank()) {
    return absl::InvalidArgumentError(
        "ragged_batch needs elements of known rank; got an unknown rank");
  }
  const int levels = RaggedLevels(spec.tensor.shape);
  if (levels == 0) {
    spec.tensor.shape = spec.tensor.shape.Prepend(dimension);
    return absl::OkStatus();
  }
  for (int i = 0; i < levels; ++i) {
    spec.tensor.shape = spec.tensor.shape.DropFirst();
  }
  spec.tensor.shape = spec.tensor.shape.Prepend(std::nullopt);
  for (int i = 1; i < levels; ++i) {
    spec = RaggedOf(std::move(spec), splits, std::nullopt);
  }
  spec = RaggedOf(std::move(spec), splits,
                  dimension.has_value() ? std::optional<int64_t>(*dimension + 1)
                                        : std::nullopt);
  return absl::OkStatus();
}

// The batch dimension: known only where every batch is full, as in tf.data.
absl::StatusOr<std::optional<int64_t>> BatchDimension(const Value& size,
                                                      bool drop_remainder,
                                                      const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(CheckCount("batch_size", size, 1, place.bound));
  PENSTOCK_ASSIGN_OR_RETURN(std::optional<int64_t> dimension,
                            IntegerOf("batch_size", size, place.bound));
  return drop_remainder ? dimension : std::nullopt;
}

// What a component of `input` becomes when padded to `wanted`.
absl::StatusOr<penstock::PartialShape> PaddedShape(
    int component, const penstock::PartialShape& input,
    const penstock::PartialShape& wanted) {
  if (!wanted.has_rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("padded_shapes must say the rank of component ", component,
                     "; got an unknown rank"));
  }
  if (!input.has_rank()) return wanted;
  if (input.rank() != wanted.rank()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the padded shape of component ", component, " must have the rank of ",
        input.ToString(), "; got ", wanted.ToString()));
  }
  penstock::PartialShape::Dims dims = wanted.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    const std::optional<int64_t> have = input.dims()[i];
    if (have.has_value() && dims[i].has_value() && *dims[i] < *have) {
      return absl::InvalidArgumentError(
          absl::StrCat("the padded shape of component ", component,
                       " must be at least its shape ", input.ToString(),
                       "; got ", wanted.ToString()));
    }
    if (!dims[i].has_value()) dims[i] = have;
  }
  return penstock::PartialShape(std::move(dims));
}

absl::Status CheckPadding(int component, const Tensor& padding,
                          penstock::DType dtype) {
  PENSTOCK_ASSIGN_OR_RETURN(Column value, FromProto(padding));
  if (value.dtype() == dtype && value.rank() == 0) return absl::OkStatus();
  penstock::TensorSpec wanted;
  wanted.dtype = dtype;
  penstock::TensorSpec found;
  found.dtype = value.dtype();
  found.shape = penstock::PartialShape(value.shape());
  return TypeError(absl::StrCat("the padding value of component ", component,
                                " must be ", wanted.ToString(), "; got ",
                                found.ToString()));
}

absl::Status OnePerComponent(absl::string_view name, size_t components,
                             int found) {
  if (components == static_cast<size_t>(found)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must have one entry per component, ", components,
                   "; got ", found));
}

// The dimension of the batches that rebatch makes, if all have the same:
// `first` is that of its input's.
std::optional<int64_t> RebatchDimension(const Rebatch& op,
                                        std::optional<int64_t> first) {
  const int64_t size = op.sizes(0);
  for (int64_t other : op.sizes()) {
    if (other != size) return std::nullopt;
  }
  const bool is_full = first.has_value() && *first % size == 0;
  return is_full || op.drop_remainder() ? std::optional<int64_t>(size)
                                        : std::nullopt;
}

}  // namespace

Result Of(const Batch& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(NoDatasets("batch", place));
  PENSTOCK_RETURN_IF_ERROR(CheckParallelism(op));
  PENSTOCK_ASSIGN_OR_RETURN(
      std::optional<int64_t> dimension,
      BatchDimension(op.size(), op.drop_remainder(), place));
  return Batched(place.inputs[0], dimension);
}

Result Of(const PaddedBatch& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(NoDatasets("padded_batch", place));
  PENSTOCK_RETURN_IF_ERROR(NoComposites("padded_batch", place));
  PENSTOCK_ASSIGN_OR_RETURN(
      std::optional<int64_t> dimension,
      BatchDimension(op.size(), op.drop_remainder(), place));
  Leaves leaves = place.inputs[0].Flatten();
  PENSTOCK_RETURN_IF_ERROR(
      OnePerComponent("padded_shapes", leaves.size(), op.shapes_size()));
  PENSTOCK_RETURN_IF_ERROR(
      OnePerComponent("padding_values", leaves.size(), op.padding_size()));
  for (int i = 0; i < op.shapes_size(); ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(penstock::PartialShape wanted,
                              FromProto(op.shapes(i)));
    PENSTOCK_ASSIGN_OR_RETURN(penstock::PartialShape padded,
                              PaddedShape(i, leaves[i].shape, wanted));
    PENSTOCK_RETURN_IF_ERROR(CheckPadding(i, op.padding(i), leaves[i].dtype));
    leaves[i].shape = padded.Prepend(dimension);
  }
  return place.inputs[0].WithLeaves(leaves);
}

Result Of(const Unbatch& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(NoDatasets("unbatch", place));
  PENSTOCK_RETURN_IF_ERROR(
      FirstDimensionOf("unbatch", place.inputs[0]).status());
  return Unbatched(place.inputs[0]);
}

Result Of(const Rebatch& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(NoDatasets("rebatch", place));
  PENSTOCK_ASSIGN_OR_RETURN(std::optional<int64_t> first,
                            FirstDimensionOf("rebatch", place.inputs[0]));
  const int64_t least = HasComposite(place.inputs[0]) ? 1 : 0;
  int64_t largest = 0;
  for (int64_t size : op.sizes()) {
    PENSTOCK_RETURN_IF_ERROR(AtLeast("batch_size", size, least));
    largest = std::max(largest, size);
  }
  if (largest == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_size must have at least one positive entry; got ",
                     op.sizes().empty() ? "an empty list" : "zeros alone"));
  }
  return Rebatched(place.inputs[0], RebatchDimension(op, first));
}

Result Of(const RaggedBatch& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(NoDatasets("ragged_batch", place));
  PENSTOCK_RETURN_IF_ERROR(NoComposites("ragged_batch", place));
  PENSTOCK_ASSIGN_OR_RETURN(
      std::optional<int64_t> dimension,
      BatchDimension(op.size(), op.drop_remainder(), place));
  if (op.row_splits_dtype() != INT32 && op.row_splits_dtype() != INT64) {
    return TypeError(
        absl::StrCat("row_splits_dtype must be int32 or int64; "
                     "got ",
                     DType_Name(op.row_splits_dtype())));
  }
  penstock::ElementSpec batched = place.inputs[0];
  PENSTOCK_RETURN_IF_ERROR(ToRagged(
      batched, static_cast<penstock::DType>(op.row_splits_dtype()), dimension));
  return batched;
}

Result Of(const SparseBatch& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(BatchDimension(op.size(), false, place).status());
  PENSTOCK_ASSIGN_OR_RETURN(penstock::PartialShape shape,
                            FromProto(op.row_shape()));
  const penstock::ElementSpec& input = place.inputs[0];
  if (input.kind != penstock::ElementSpec::Kind::kTensor) {
    return TypeError(
        absl::StrCat("sparse_batch takes elements that are one tensor; got ",
                     input.ToString()));
  }
  if (!shape.has_rank()) {
    return absl::InvalidArgumentError(
        "row_shape must say its rank; got an unknown one");
  }
  if (input.tensor.shape.has_rank() &&
      input.tensor.shape.rank() != shape.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("row_shape must have the rank of elements ",
                     input.ToString(), "; got ", shape.ToString()));
  }
  return SparseOf(input.tensor.dtype, shape.rank() + 1);
}

Result Of(const Pack& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(NoDatasets("pack", place));
  PENSTOCK_RETURN_IF_ERROR(NoComposites("pack", place));
  PENSTOCK_RETURN_IF_ERROR(InRange("length", op.length(), 1, int64_t{1} << 31));
  PENSTOCK_RETURN_IF_ERROR(
      InRange("open_rows", op.open_rows(), 1, int64_t{1} << 16));
  Leaves leaves = place.inputs[0].Flatten();
  PENSTOCK_RETURN_IF_ERROR(
      OnePerComponent("padding_values", leaves.size(), op.padding_size()));
  if (leaves.empty()) {
    return absl::InvalidArgumentError(
        "pack needs elements of at least one component; got none");
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    penstock::TensorSpec& leaf = leaves[i];
    const bool is_sequence = leaf.dtype != penstock::DType::kString &&
                             leaf.shape.has_rank() && leaf.shape.rank() > 0 &&
                             leaf.shape.DropFirst().is_fully_known();
    if (!is_sequence) {
      return TypeError(absl::StrCat(
          "pack takes sequences of numbers, whose dimensions but the first are "
          "known; got ",
          leaf.ToString()));
    }
    PENSTOCK_RETURN_IF_ERROR(CheckPadding(
        static_cast<int>(i), op.padding(static_cast<int>(i)), leaf.dtype));
    leaf.shape = leaf.shape.DropFirst().Prepend(op.length());
  }
  auto ids = penstock::TensorSpec::Scalar(penstock::DType::kInt32);
  ids.shape = ids.shape.Prepend(op.length());
  penstock::ElementSpec packed;
  packed.kind = penstock::ElementSpec::Kind::kDict;
  packed.keys = {"positions", "segment_ids", "values"};
  packed.order = {2, 1, 0};
  packed.children = {penstock::ElementSpec::Tensor(ids),
                     penstock::ElementSpec::Tensor(ids),
                     place.inputs[0].WithLeaves(leaves)};
  return packed;
}

}  // namespace penstock::plan::infer
