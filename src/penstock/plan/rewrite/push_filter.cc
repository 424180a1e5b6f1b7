#include "penstock/plan/rewrite/push_filter.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/rewrite/compose.h"
#include "penstock/plan/rewrite/function_facts.h"

namespace penstock::plan {
namespace {

// Of the rows that a map makes, the filter must drop so many that doing a part
// of it twice is nothing beside what is saved.
constexpr double kMostKept = 0.8;
// Items that a step of the part may make; more may be costly.
constexpr int64_t kFewItems = 64;

// The predicate for rows before the map.
struct Lower {
  Function predicate;
  bool may_hide_errors = false;  // what is not computed may fail
  bool does_work = false;        // what is not computed is worth mentioning
  const char* why = "elements that are left out are not computed";
};

// For each argument of the predicate, which argument of the map it is; nothing
// if one is computed.
std::optional<std::vector<uint32_t>> ArgumentsBelow(const Function& predicate,
                                                    const Function& map) {
  std::vector<uint32_t> below(map.outputs_size(), 0);
  for (uint32_t argument : ArgumentsOf(predicate)) {
    const std::optional<uint32_t> passed =
        PassedArgument(map, static_cast<int>(argument));
    if (!passed.has_value()) return std::nullopt;
    below[argument] = *passed;
  }
  return below;
}

bool IsSmall(const penstock::TensorSpec& spec) {
  return spec.shape.is_fully_known() &&
         NumItems(spec.shape.ToShape()) <= kFewItems;
}

// How many times as many rows the map makes as the filter lets through, if that
// was measured.
std::optional<double> Saving(const Draft& draft, int map, int filter,
                             const PassContext& context) {
  const auto& measured = context.options().measured;
  const auto before = measured.find(draft.name(map));
  const auto after = measured.find(draft.name(filter));
  if (before == measured.end() || after == measured.end() ||
      after->second.rows < 1) {
    return std::nullopt;
  }
  return before->second.rows / after->second.rows;
}

// The predicate of what the map is given, if it is small beside the map.
std::optional<Lower> WithPartOf(const Draft& draft, int map, int filter) {
  const Function& function = draft.node(map).map().function();
  const Function& predicate = draft.node(filter).filter().predicate();
  if (IsRandom(function) || IsRandom(predicate)) return std::nullopt;
  const std::optional<Function> both =
      Compose(NamedFunction(draft, map, function),
              NamedFunction(draft, filter, predicate));
  if (!both.has_value()) return std::nullopt;
  const absl::StatusOr<std::vector<StepFacts>> facts =
      FindStepFacts(*both, draft.leaves(draft.input(map)), draft.bound());
  if (!facts.ok()) return std::nullopt;
  const std::vector<bool> is_needed = NeededSteps(*both);
  Lower lower;
  for (int i = 0; i < both->steps_size(); ++i) {
    const Function::Step& step = both->steps(i);
    if (!step.has_call() && !step.has_part()) continue;
    const bool is_small = IsSmall((*facts)[i].spec);
    // A call makes all of its parts, whoever reads them.
    if (is_needed[step.has_part() ? step.part().call() : i]) {
      if (!is_small) return std::nullopt;
      continue;
    }
    lower.does_work |= !is_small;
    lower.may_hide_errors |= (*facts)[i].may_fail;
  }
  if (!lower.does_work) return std::nullopt;
  lower.predicate = OnlySteps(*both, is_needed);
  lower.why =
      "elements that are left out are not computed, but for the part that the "
      "filter asks for";
  return lower;
}

std::optional<Lower> FindLower(const Draft& draft, int map, int filter,
                               std::optional<double> saving) {
  const Function& predicate = draft.node(filter).filter().predicate();
  const Function& function = draft.node(map).map().function();
  const std::optional<std::vector<uint32_t>> below =
      ArgumentsBelow(predicate, function);
  if (below.has_value()) {
    return Lower{
        WithArguments(predicate, *below),
        MayFail(function, draft.leaves(draft.input(map)), draft.bound()),
        HasCalls(function)};
  }
  if (!saving.has_value() || 1 > kMostKept * *saving) return std::nullopt;
  return WithPartOf(draft, map, filter);
}

}  // namespace

bool PushFilter(Draft& draft, int id, PassContext& context) {
  const Function* predicate = NativePredicateOf(draft.node(id));
  if (predicate == nullptr) return false;
  const int map = draft.input(id);
  const Function* function = NativeMapOf(draft.node(map));
  if (function == nullptr || draft.OnlyUser(map) != id) return false;
  const std::optional<double> saving = Saving(draft, map, id, context);
  std::optional<Lower> lower = FindLower(draft, map, id, saving);
  if (!lower.has_value()) return false;
  const auto decline = [&](std::string why) {
    return context.Declined(context.Note(draft, {map, id}, std::move(why)));
  };
  if (IsRandom(*predicate) || IsRandom(*function)) {
    return decline("one of the two draws random numbers");
  }
  if (lower->may_hide_errors && !context.options().may_hide_errors) {
    if (!lower->does_work) return false;
    const std::string saved =
        saving.has_value()
            ? absl::StrFormat("; it would run %.1f times less often", *saving)
            : "";
    return decline(absl::StrCat(
        draft.name(map),
        " may fail, and errors of elements that are left out would not be "
        "seen",
        saved, "; allow it with may_hide_errors"));
  }
  Node filter = Like(draft.node(id));
  *filter.mutable_filter()->mutable_predicate() = std::move(lower->predicate);
  const absl::StatusOr<int> first =
      draft.Add(std::move(filter), {draft.input(map)});
  if (!first.ok()) return false;
  const absl::StatusOr<int> then = draft.Add(draft.node(map), {*first});
  if (!then.ok()) return false;
  Remark remark = context.Note(draft, {map, id}, lower->why);
  return draft.Replace(id, *then) && context.Applied(std::move(remark));
}

}  // namespace penstock::plan
