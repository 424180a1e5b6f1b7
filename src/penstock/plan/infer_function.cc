#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/expect.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/token_budget.h"

namespace penstock::plan::infer {
namespace {

using Leaves = std::vector<penstock::TensorSpec>;

constexpr int64_t kMaxInterleave = int64_t{1} << 20;
constexpr int64_t kMaxWindow = int64_t{1} << 24;

// What a function of tensors returns for `arguments`.
Result Call(const Function& function, absl::string_view what,
            const Leaves& arguments, const Place& place) {
  if (function.has_dataset()) {
    return TypeError(
        absl::StrCat(what,
                     " must return tensors; got a Dataset (use flat_map or "
                     "interleave to read it)"));
  }
  if (IsPython(function)) return FromProto(function.output());
  PENSTOCK_ASSIGN_OR_RETURN(functions::Program program,
                            MakeProgram(function, arguments, place.bound));
  PENSTOCK_ASSIGN_OR_RETURN(penstock::ElementSpec structure,
                            FromProto(function.output()));
  const size_t leaves = structure.Flatten().size();
  if (leaves != program.output_specs().size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " must have one output per component of what it ", "returns, ",
        leaves, "; got ", program.output_specs().size()));
  }
  if (function.has_python() && structure.Flatten() != program.output_specs()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " must give as Python what its steps give; got ",
                     structure.ToString()));
  }
  return structure.WithLeaves(program.output_specs());
}

// A predicate's element passes through.
Result Keep(const Function& predicate, absl::string_view what,
            const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(
      penstock::ElementSpec returned,
      Call(predicate, what, place.inputs[0].Flatten(), place));
  const bool is_scalar_bool =
      returned.kind == penstock::ElementSpec::Kind::kTensor &&
      returned.tensor.dtype == penstock::DType::kBool &&
      returned.tensor.shape.Accepts(Shape{});
  if (is_scalar_bool) return place.inputs[0];
  return TypeError(absl::StrCat(what, " must return a scalar bool; got ",
                                returned.ToString()));
}

// Whether what the function computes may be bound to its dataset's values.
absl::Status CheckBinding(absl::Span<const penstock::TensorSpec> outputs,
                          const Plan& dataset) {
  if (outputs.size() < static_cast<size_t>(dataset.bound_size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the function must give its dataset ", dataset.bound_size(),
        " bound values; got ", outputs.size()));
  }
  for (int i = 0; i < dataset.bound_size(); ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(penstock::TensorSpec wanted,
                              FromProto(dataset.bound(i)));
    if (wanted.dtype == outputs[i].dtype &&
        wanted.shape.Accepts(outputs[i].shape)) {
      continue;
    }
    return TypeError(absl::StrCat("bound value ", i, " must be ",
                                  wanted.ToString(), "; got ",
                                  outputs[i].ToString()));
  }
  return absl::OkStatus();
}

// The elements of the dataset that a function returns.
Result CallForDataset(const Function& function, absl::string_view what,
                      const Leaves& arguments, const Place& place) {
  if (!function.has_dataset()) {
    PENSTOCK_ASSIGN_OR_RETURN(penstock::ElementSpec returned,
                              Call(function, what, arguments, place));
    return TypeError(absl::StrCat(what, " must return a Dataset; got ",
                                  returned.ToString()));
  }
  PENSTOCK_ASSIGN_OR_RETURN(functions::Program program,
                            MakeProgram(function, arguments, place.bound));
  PENSTOCK_RETURN_IF_ERROR(
      CheckBinding(program.output_specs(), function.dataset()));
  return InferPlan(function.dataset(), place.depth + 1);
}

absl::Status CheckInteger(const Function& function, absl::string_view what,
                          const Leaves& arguments, const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::ElementSpec returned,
                            Call(function, what, arguments, place));
  if (returned.kind == penstock::ElementSpec::Kind::kTensor &&
      IsInteger(returned.tensor.dtype) &&
      returned.tensor.shape.Accepts(Shape{})) {
    return absl::OkStatus();
  }
  return TypeError(absl::StrCat(what, " must return an integer scalar; got ",
                                returned.ToString()));
}

Result InitialState(const Rows& rows, const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::ElementSpec state, Of(rows, place));
  if (rows.rows() == 1) return state;
  return absl::InvalidArgumentError(absl::StrCat(
      "the initial state must have exactly one row; got ", rows.rows()));
}

// Widens `state` by the shapes of `next`; false if there was nothing to widen.
bool Widen(penstock::ElementSpec& state, const penstock::ElementSpec& next) {
  Leaves leaves = state.Flatten();
  const Leaves others = next.Flatten();
  bool is_wider = false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    penstock::PartialShape relaxed = Relax(leaves[i].shape, others[i].shape);
    is_wider |= relaxed != leaves[i].shape;
    leaves[i].shape = std::move(relaxed);
  }
  state = state.WithLeaves(leaves);
  return is_wider;
}

// What `function`, called with (state, element), returns once the state's
// shapes have become wide enough for all calls. `state_of` picks the new state
// out of what is returned. Ends: each round loses a dimension or a rank.
template <typename StateOf>
absl::StatusOr<std::pair<penstock::ElementSpec, penstock::ElementSpec>> Fold(
    const Rows& initial_state, const Function& function, absl::string_view what,
    const Place& place, StateOf state_of) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::ElementSpec state,
                            InitialState(initial_state, place));
  const Leaves element = place.inputs[0].Flatten();
  for (;;) {
    Leaves arguments = state.Flatten();
    arguments.insert(arguments.end(), element.begin(), element.end());
    PENSTOCK_ASSIGN_OR_RETURN(penstock::ElementSpec returned,
                              Call(function, what, arguments, place));
    PENSTOCK_ASSIGN_OR_RETURN(penstock::ElementSpec next, state_of(returned));
    PENSTOCK_RETURN_IF_ERROR(
        SameTypes(absl::StrCat("the new state of ", what), state, next));
    if (!Widen(state, next)) return std::pair(state, returned);
  }
}

using Folded = std::pair<penstock::ElementSpec, penstock::ElementSpec>;

absl::StatusOr<Folded> FoldScan(const Scan& op, const Place& place) {
  return Fold(op.initial_state(), op.function(), "the function of scan", place,
              [](const penstock::ElementSpec& returned) -> Result {
                if (returned.kind == penstock::ElementSpec::Kind::kTuple &&
                    returned.children.size() == 2) {
                  return returned.children[0];
                }
                return TypeError(absl::StrCat(
                    "the function of scan must return a tuple of the "
                    "new state and the output; got ",
                    returned.ToString()));
              });
}

absl::StatusOr<Folded> FoldReduce(const Reduce& op, const Place& place) {
  return Fold(
      op.initial_state(), op.function(), "the function of reduce", place,
      [](const penstock::ElementSpec& returned) -> Result { return returned; });
}

}  // namespace

Result Of(const Map& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(CheckParallelism(op));
  const Leaves arguments = place.inputs[0].Flatten();
  if (!op.function().has_dataset()) {
    return Call(op.function(), "the function of map", arguments, place);
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      penstock::ElementSpec element,
      CallForDataset(op.function(), "the function of map", arguments, place));
  return penstock::ElementSpec::Dataset(std::move(element));
}

Result Of(const Filter& op, const Place& place) {
  return Keep(op.predicate(), "the predicate of filter", place);
}

Result Of(const TakeWhile& op, const Place& place) {
  return Keep(op.predicate(), "the predicate of take_while", place);
}

Result Of(const FlatMap& op, const Place& place) {
  return CallForDataset(op.function(), "the function of flat_map",
                        place.inputs[0].Flatten(), place);
}

Result Of(const Interleave& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(
      InRange("cycle_length", op.cycle_length(), 1, kMaxInterleave));
  PENSTOCK_RETURN_IF_ERROR(
      InRange("block_length", op.block_length(), 1, kMaxInterleave));
  PENSTOCK_RETURN_IF_ERROR(CheckParallelism(op));
  return CallForDataset(op.function(), "the function of interleave",
                        place.inputs[0].Flatten(), place);
}

Result Of(const Scan& op, const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(Folded folded, FoldScan(op, place));
  return folded.second.children[1];
}

Result Of(const Reduce& op, const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(Folded folded, FoldReduce(op, place));
  return folded.first;
}

Result Of(const GroupByWindow& op, const Place& place) {
  const auto key = penstock::TensorSpec::Scalar(penstock::DType::kInt64);
  const auto rows = penstock::TensorSpec::Scalar(penstock::DType::kString);
  PENSTOCK_RETURN_IF_ERROR(CheckInteger(op.key(),
                                        "the key_func of group_by_window",
                                        place.inputs[0].Flatten(), place));
  if (op.has_window_size() == op.has_window_size_function()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "group_by_window must have either window_size or window_size_func; "
        "got ",
        op.has_window_size() ? "both" : "neither"));
  }
  if (op.has_window_size()) {
    PENSTOCK_RETURN_IF_ERROR(
        CheckCount("window_size", op.window_size(), 1, place.bound));
  } else {
    PENSTOCK_RETURN_IF_ERROR(
        CheckInteger(op.window_size_function(),
                     "the window_size_func of group_by_window", {key}, place));
  }
  return CallForDataset(op.reduce(), "the reduce_func of group_by_window",
                        {key, rows}, place);
}

Result Of(const BucketBySequenceLength& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(CheckInteger(
      op.length(), "the element_length_func of bucket_by_sequence_length",
      place.inputs[0].Flatten(), place));
  if (op.boundaries_size() > 0 && op.batch_sizes().empty()) {
    return absl::InvalidArgumentError(
        "bucket_by_sequence_length takes either bucket_batch_sizes or "
        "max_tokens; got neither");
  }
  if (op.batch_sizes_size() != op.boundaries_size() + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "bucket_batch_sizes must have one entry more than bucket_boundaries, ",
        op.boundaries_size() + 1, "; got ", op.batch_sizes_size()));
  }
  for (int64_t size : op.batch_sizes()) {
    PENSTOCK_RETURN_IF_ERROR(AtLeast("bucket_batch_sizes", size, 1));
  }
  for (int i = 1; i < op.boundaries_size(); ++i) {
    if (op.boundaries(i - 1) < op.boundaries(i)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("bucket_boundaries must ascend; got ",
                     op.boundaries(i - 1), " before ", op.boundaries(i)));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckBudget(op));
  // The rules of one batch are those of batch and padded_batch.
  Value size;
  const int64_t largest =
      *std::max_element(op.batch_sizes().begin(), op.batch_sizes().end());
  size.mutable_constant()->set_dtype(INT64);
  size.mutable_constant()->set_data(&largest, sizeof(largest));
  if (op.no_padding()) {
    Batch batch;
    *batch.mutable_size() = size;
    return Of(batch, place);
  }
  PaddedBatch batch;
  *batch.mutable_size() = size;
  *batch.mutable_shapes() = op.shapes();
  *batch.mutable_padding() = op.padding();
  return Of(batch, place);
}

Result Of(const BatchByTokens& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(CheckInteger(op.length(),
                                        "the length_func of batch_by_tokens",
                                        place.inputs[0].Flatten(), place));
  PENSTOCK_RETURN_IF_ERROR(AtLeast("max_tokens", op.max_tokens(), 1));
  if (op.has_window()) {
    PENSTOCK_RETURN_IF_ERROR(InRange("window", op.window(), 1, kMaxWindow));
  }
  if (op.has_max_rows()) {
    PENSTOCK_RETURN_IF_ERROR(AtLeast("max_rows", op.max_rows(), 1));
  }
  // No batch of one size: any will do for the rules, and none is known.
  PaddedBatch batch;
  const int64_t size = 2;
  batch.mutable_size()->mutable_constant()->set_dtype(INT64);
  batch.mutable_size()->mutable_constant()->set_data(&size, sizeof(size));
  *batch.mutable_shapes() = op.shapes();
  *batch.mutable_padding() = op.padding();
  return Of(batch, place);
}

}  // namespace penstock::plan::infer

namespace penstock::plan {

absl::StatusOr<penstock::ElementSpec> InferState(const Scan& op,
                                                 const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(infer::Folded folded, infer::FoldScan(op, place));
  return folded.first;
}

absl::StatusOr<penstock::ElementSpec> InferState(const Reduce& op,
                                                 const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(infer::Folded folded, infer::FoldReduce(op, place));
  return folded.first;
}

}  // namespace penstock::plan
