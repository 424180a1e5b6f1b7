#include "penstock/plan/rewrite/fuse_maps.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "penstock/plan/convert.h"
#include "penstock/plan/rewrite/compose.h"
#include "penstock/plan/rewrite/function_facts.h"

namespace penstock::plan {
namespace {

// Longer functions are not made: each is looked at as a whole.
constexpr int kMaxSteps = 128;

bool IsShortEnough(const Function& first, const Function& second) {
  return first.steps_size() + second.steps_size() <= kMaxSteps;
}

bool HasRanks(absl::Span<const penstock::TensorSpec> leaves) {
  return std::all_of(leaves.begin(), leaves.end(),
                     [](const auto& leaf) { return leaf.shape.has_rank(); });
}

// The settings of both, if they agree.
std::optional<Map> SettingsOf(const Map& first, const Map& second) {
  if (first.has_parallelism() && second.has_parallelism() &&
      first.parallelism() != second.parallelism()) {
    return std::nullopt;
  }
  if (first.has_deterministic() != second.has_deterministic() ||
      first.deterministic() != second.deterministic()) {
    return std::nullopt;
  }
  Map both;
  if (first.has_parallelism()) both.set_parallelism(first.parallelism());
  if (second.has_parallelism()) both.set_parallelism(second.parallelism());
  if (first.has_deterministic()) both.set_deterministic(first.deterministic());
  return both;
}

bool FuseTwoMaps(Draft& draft, int id, PassContext& context) {
  const int below = draft.input(id);
  const Function* first = NativeMapOf(draft.node(below));
  const Function* second = NativeMapOf(draft.node(id));
  if (first == nullptr || second == nullptr || draft.OnlyUser(below) != id) {
    return false;
  }
  const auto decline = [&](const char* why) {
    return context.Declined(context.Note(draft, {below, id}, why));
  };
  if (IsRandom(*first) || IsRandom(*second)) {
    return decline("random numbers depend on the node that draws them");
  }
  std::optional<Map> both =
      SettingsOf(draft.node(below).map(), draft.node(id).map());
  if (!both.has_value()) {
    return decline("the two are to be run in different ways");
  }
  const std::vector<penstock::TensorSpec> arguments =
      draft.leaves(draft.input(below));
  // Rows of unknown rank are computed one by one.
  if (!IsShortEnough(*first, *second) || !HasRanks(draft.leaves(below)) ||
      !HasRanks(draft.leaves(id))) {
    return false;
  }
  const std::optional<Function> composed = Compose(
      NamedFunction(draft, below, *first), NamedFunction(draft, id, *second));
  if (!composed.has_value()) return false;
  absl::StatusOr<Function> function =
      WithoutDeadSteps(*composed, arguments, draft.bound());
  if (!function.ok()) return false;
  *both->mutable_function() = *std::move(function);
  Node fused = Like(draft.node(id));
  *fused.mutable_map() = *std::move(both);
  const absl::StatusOr<int> added =
      draft.Add(std::move(fused), {draft.input(below)});
  if (!added.ok()) return false;
  Remark remark = context.Note(draft, {below, id}, "one function does both");
  return draft.Replace(id, *added) && context.Applied(std::move(remark));
}

bool IsScalarBool(const penstock::TensorSpec& spec) {
  return spec == penstock::TensorSpec::Scalar(penstock::DType::kBool);
}

bool FuseTwoFilters(Draft& draft, int id, PassContext& context) {
  const int below = draft.input(id);
  const Function* first = NativePredicateOf(draft.node(below));
  const Function* second = NativePredicateOf(draft.node(id));
  if (first == nullptr || second == nullptr || draft.OnlyUser(below) != id ||
      IsRandom(*first) || IsRandom(*second) ||
      !IsShortEnough(*first, *second)) {
    return false;
  }
  const std::vector<penstock::TensorSpec> arguments =
      draft.leaves(draft.input(below));
  const auto facts = FindStepFacts(*second, arguments, draft.bound());
  const auto first_facts = FindStepFacts(*first, arguments, draft.bound());
  if (!facts.ok() || !first_facts.ok()) return false;
  for (int i = 0; i < second->steps_size(); ++i) {
    if (!second->steps(i).has_call()) continue;
    if ((*facts)[i].may_fail || !(*facts)[i].is_elementwise) return false;
  }
  if (!IsScalarBool((*first_facts)[first->outputs(0)].spec) ||
      !IsScalarBool((*facts)[second->outputs(0)].spec)) {
    return false;
  }
  // Both predicates have the same arguments: the second's steps follow.
  Function both = NamedFunction(draft, below, *first);
  const Function more = NamedFunction(draft, id, *second);
  const auto offset = static_cast<uint32_t>(both.steps_size());
  const auto origins = static_cast<uint32_t>(both.origins_size());
  both.mutable_origins()->MergeFrom(more.origins());
  for (const Function::Step& step : more.steps()) {
    Function::Step& added = *both.add_steps() = step;
    if (added.has_call()) {
      for (uint32_t& arg : *added.mutable_call()->mutable_args()) arg += offset;
    }
    if (added.has_part()) {
      added.mutable_part()->set_call(added.part().call() + offset);
    }
    if (added.has_origin()) added.set_origin(added.origin() + origins);
  }
  Function::Step& last = *both.add_steps();
  last.mutable_call()->set_function("logical_and");
  last.mutable_call()->add_args(both.outputs(0));
  last.mutable_call()->add_args(more.outputs(0) + offset);
  both.set_outputs(0, static_cast<uint32_t>(both.steps_size() - 1));

  Node fused = Like(draft.node(id));
  *fused.mutable_filter()->mutable_predicate() = std::move(both);
  const absl::StatusOr<int> added =
      draft.Add(std::move(fused), {draft.input(below)});
  if (!added.ok()) return false;
  Remark remark = context.Note(draft, {below, id}, "one predicate asks both");
  return draft.Replace(id, *added) && context.Applied(std::move(remark));
}

}  // namespace

bool FuseMaps(Draft& draft, int id, PassContext& context) {
  if (draft.node(id).has_map()) return FuseTwoMaps(draft, id, context);
  if (draft.node(id).has_filter()) return FuseTwoFilters(draft, id, context);
  return false;
}

}  // namespace penstock::plan
