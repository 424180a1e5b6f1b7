#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/expect.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/validate.h"

namespace penstock::plan::infer {
namespace {

// Puts the inputs' specs in place of the tensors of `structure`, in order.
void Fill(penstock::ElementSpec& structure,
          absl::Span<const penstock::ElementSpec>& inputs) {
  if (structure.kind == penstock::ElementSpec::Kind::kTensor) {
    structure = inputs.front();
    inputs.remove_prefix(1);
    return;
  }
  for (penstock::ElementSpec& child : structure.children) Fill(child, inputs);
}

// What elements of several datasets have in common, shapes relaxed.
Result Common(absl::string_view what,
              absl::Span<const penstock::ElementSpec> inputs) {
  std::vector<penstock::TensorSpec> leaves = inputs[0].Flatten();
  for (const penstock::ElementSpec& input : inputs.subspan(1)) {
    PENSTOCK_RETURN_IF_ERROR(SameTypes(what, inputs[0], input));
    const std::vector<penstock::TensorSpec> others = input.Flatten();
    for (size_t i = 0; i < leaves.size(); ++i) {
      leaves[i].shape = Relax(leaves[i].shape, others[i].shape);
    }
  }
  return inputs[0].WithLeaves(leaves);
}

// A dataset in place of each component.
void ToDatasets(penstock::ElementSpec& spec) {
  if (spec.kind == penstock::ElementSpec::Kind::kTensor ||
      spec.kind == penstock::ElementSpec::Kind::kDataset || IsComposite(spec)) {
    spec = penstock::ElementSpec::Dataset(std::move(spec));
    return;
  }
  for (penstock::ElementSpec& child : spec.children) ToDatasets(child);
}

// Of repeat, take and skip, where an unset count has its own meaning.
absl::Status CheckOptionalCount(const Value& count, absl::string_view unset,
                                const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(std::optional<int64_t> value,
                            IntegerOf("count", count, place.bound));
  if (value.value_or(0) >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "count must be at least 0, or left out ", unset, "; got ", *value));
}

}  // namespace

Result Of(const Zip& op, const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::ElementSpec structure,
                            FromProto(op.structure()));
  const size_t leaves = structure.Flatten().size();
  if (leaves != place.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the structure of zip must hold each of its ",
                     place.inputs.size(), " datasets once; got ", leaves));
  }
  absl::Span<const penstock::ElementSpec> inputs = place.inputs;
  Fill(structure, inputs);
  return structure;
}

Result Of(const Window& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(CheckCount("size", op.size(), 1, place.bound));
  PENSTOCK_RETURN_IF_ERROR(CheckCount("shift", op.shift(), 1, place.bound));
  PENSTOCK_RETURN_IF_ERROR(CheckCount("stride", op.stride(), 1, place.bound));
  if (place.inputs[0].Flatten().empty()) {
    return absl::InvalidArgumentError(
        "window needs elements of at least one component; got none");
  }
  penstock::ElementSpec windows = place.inputs[0];
  ToDatasets(windows);
  return windows;
}

Result Of(const Concatenate& op, const Place& place) {
  return Common("the dataset to concatenate", place.inputs);
}

Result Of(const SampleFromDatasets& op, const Place& place) {
  if (op.weights_size() > 0 &&
      static_cast<size_t>(op.weights_size()) != place.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there must be one weight per dataset, ",
                     place.inputs.size(), "; got ", op.weights_size()));
  }
  for (const double weight : op.weights()) {
    if (weight >= 0 && std::isfinite(weight)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("weights must be at least 0; got ", weight));
  }
  return Common("each dataset to sample from", place.inputs);
}

Result Of(const ChooseFromDatasets& op, const Place& place) {
  const penstock::ElementSpec& choice = place.inputs[0];
  if (choice.kind != penstock::ElementSpec::Kind::kTensor ||
      choice.tensor.dtype != penstock::DType::kInt64 ||
      !choice.tensor.shape.has_rank() || choice.tensor.shape.rank() != 0) {
    return TypeError(absl::StrCat(
        "choice_dataset must have elements int64(); got ", choice.ToString()));
  }
  return Common("each dataset to choose from", place.inputs.subspan(1));
}

Result Of(const Unique& op, const Place& place) {
  for (const penstock::TensorSpec& leaf : place.inputs[0].Flatten()) {
    if (!IsFloat(leaf.dtype) && !IsComplex(leaf.dtype)) continue;
    return TypeError(absl::StrCat(
        "unique takes integers, bools and strings; got ", leaf.ToString()));
  }
  return place.inputs[0];
}

Result Of(const AssertCardinality& op, const Place& place) {
  if (op.expected().kind_case() == Cardinality::KIND_NOT_SET) {
    return absl::InvalidArgumentError("cardinality must be given; got nothing");
  }
  if (op.expected().has_finite()) {
    PENSTOCK_RETURN_IF_ERROR(AtLeast("cardinality", op.expected().finite(), 0));
  }
  return place.inputs[0];
}

Result Of(const Shuffle& op, const Place& place) {
  if (op.has_window()) {
    PENSTOCK_RETURN_IF_ERROR(
        CheckCount("buffer_size", op.window(), 1, place.bound));
  }
  return place.inputs[0];
}

Result Of(const Repeat& op, const Place& place) {
  if (op.has_count()) {
    PENSTOCK_RETURN_IF_ERROR(
        CheckOptionalCount(op.count(), "to repeat for ever", place));
  }
  return place.inputs[0];
}

Result Of(const Take& op, const Place& place) {
  if (op.has_count()) {
    PENSTOCK_RETURN_IF_ERROR(CheckOptionalCount(op.count(), "for all", place));
  }
  return place.inputs[0];
}

Result Of(const Skip& op, const Place& place) {
  if (op.has_count()) {
    PENSTOCK_RETURN_IF_ERROR(
        CheckOptionalCount(op.count(), "to skip everything", place));
  }
  return place.inputs[0];
}

Result Of(const Shard& op, const Place& place) {
  if (op.is_by_worker()) {
    if (!op.has_num_shards() && !op.has_index()) return place.inputs[0];
    return absl::InvalidArgumentError(
        "shard has either two numbers or the hint; got both");
  }
  PENSTOCK_RETURN_IF_ERROR(
      CheckCount("num_shards", op.num_shards(), 1, place.bound));
  PENSTOCK_RETURN_IF_ERROR(CheckCount("index", op.index(), 0, place.bound));
  if (op.num_shards().has_constant() && op.index().has_constant()) {
    PENSTOCK_ASSIGN_OR_RETURN(Number shards,
                              NumberOf(op.num_shards().constant()));
    PENSTOCK_ASSIGN_OR_RETURN(Number index, NumberOf(op.index().constant()));
    if (index.integer >= shards.integer) {
      return absl::InvalidArgumentError(
          absl::StrCat("index must be less than num_shards, ", shards.integer,
                       "; got ", index.integer));
    }
  }
  return place.inputs[0];
}

Result Of(const Enumerate& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(
      IntegerOf("start", op.start(), place.bound).status());
  return penstock::ElementSpec::Tuple(
      {penstock::ElementSpec::Tensor({}), place.inputs[0]});
}

Result Of(const Prefetch& op, const Place& place) {
  if (op.has_buffer_size() && op.buffer_size() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "buffer_size must be at least 0, or left out to be chosen; got ",
        op.buffer_size()));
  }
  return place.inputs[0];
}

Result Of(const Cache& op, const Place& place) { return place.inputs[0]; }

Result Of(const IgnoreErrors& op, const Place& place) {
  return place.inputs[0];
}

Result Of(const WithOptions& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(ValidateOptions(op.options()));
  return place.inputs[0];
}

}  // namespace penstock::plan::infer
