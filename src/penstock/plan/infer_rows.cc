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

Result Of(const Concatenate& op, const Place& place) {
  const penstock::ElementSpec& first = place.inputs[0];
  const penstock::ElementSpec& second = place.inputs[1];
  PENSTOCK_RETURN_IF_ERROR(
      SameTypes("the dataset to concatenate", first, second));
  std::vector<penstock::TensorSpec> leaves = first.Flatten();
  const std::vector<penstock::TensorSpec> others = second.Flatten();
  for (size_t i = 0; i < leaves.size(); ++i) {
    leaves[i].shape = Relax(leaves[i].shape, others[i].shape);
  }
  return first.WithLeaves(leaves);
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
