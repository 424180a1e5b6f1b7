#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/expect.h"
#include "penstock/plan/infer.h"

namespace penstock::plan::infer {
namespace {

using Leaves = std::vector<penstock::TensorSpec>;

absl::Status CheckParallelism(bool is_set, int64_t parallelism) {
  return is_set ? AtLeast("num_parallel_calls", parallelism, 1)
                : absl::OkStatus();
}

// Datasets inside elements cannot be stacked.
absl::Status NoDatasets(absl::string_view what, const Place& place) {
  if (!place.inputs[0].has_dataset()) return absl::OkStatus();
  return TypeError(absl::StrCat(
      what, " takes elements of tensors; got ", place.inputs[0].ToString(),
      "\n  Read the datasets inside the elements first, with flat_map()."));
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
  PENSTOCK_RETURN_IF_ERROR(
      CheckParallelism(op.has_parallelism(), op.parallelism()));
  PENSTOCK_ASSIGN_OR_RETURN(
      std::optional<int64_t> dimension,
      BatchDimension(op.size(), op.drop_remainder(), place));
  Leaves leaves = place.inputs[0].Flatten();
  for (penstock::TensorSpec& leaf : leaves) {
    leaf.shape = leaf.shape.Prepend(dimension);
  }
  return place.inputs[0].WithLeaves(leaves);
}

Result Of(const PaddedBatch& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(NoDatasets("padded_batch", place));
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
  Leaves leaves = place.inputs[0].Flatten();
  PENSTOCK_RETURN_IF_ERROR(CommonFirstDimension("unbatch", leaves).status());
  for (penstock::TensorSpec& leaf : leaves) leaf.shape = leaf.shape.DropFirst();
  return place.inputs[0].WithLeaves(leaves);
}

Result Of(const Rebatch& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(NoDatasets("rebatch", place));
  Leaves leaves = place.inputs[0].Flatten();
  PENSTOCK_ASSIGN_OR_RETURN(std::optional<int64_t> first,
                            CommonFirstDimension("rebatch", leaves));
  int64_t largest = 0;
  for (int64_t size : op.sizes()) {
    PENSTOCK_RETURN_IF_ERROR(AtLeast("batch_size", size, 0));
    largest = std::max(largest, size);
  }
  if (largest == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_size must have at least one positive entry; got ",
                     op.sizes().empty() ? "an empty list" : "zeros alone"));
  }
  const std::optional<int64_t> dimension = RebatchDimension(op, first);
  for (penstock::TensorSpec& leaf : leaves) {
    leaf.shape = leaf.shape.DropFirst().Prepend(dimension);
  }
  return place.inputs[0].WithLeaves(leaves);
}

}  // namespace penstock::plan::infer
