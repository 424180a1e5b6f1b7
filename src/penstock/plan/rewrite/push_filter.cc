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

// " It would run 3.1 times less often.", where that was measured.
std::string Saving(const Draft& draft, int map, int filter,
                   const PassContext& context) {
  const auto& measured = context.options().measured;
  const auto before = measured.find(draft.name(map));
  const auto after = measured.find(draft.name(filter));
  if (before == measured.end() || after == measured.end() ||
      after->second.rows < 1) {
    return "";
  }
  return absl::StrFormat("; it would run %.1f times less often",
                         before->second.rows / after->second.rows);
}

bool DoesWork(const Function& function) {
  return std::any_of(function.steps().begin(), function.steps().end(),
                     [](const auto& step) { return step.has_call(); });
}

}  // namespace

bool PushFilter(Draft& draft, int id, PassContext& context) {
  const Function* predicate = NativePredicateOf(draft.node(id));
  if (predicate == nullptr) return false;
  const int map = draft.input(id);
  const Function* function = NativeMapOf(draft.node(map));
  if (function == nullptr || draft.OnlyUser(map) != id) return false;
  const std::optional<std::vector<uint32_t>> below =
      ArgumentsBelow(*predicate, *function);
  if (!below.has_value()) return false;
  const auto decline = [&](std::string why) {
    return context.Declined(context.Note(draft, {map, id}, std::move(why)));
  };
  if (IsRandom(*predicate) || IsRandom(*function)) {
    return decline("one of the two draws random numbers");
  }
  const int input = draft.input(map);
  if (!context.options().may_hide_errors &&
      MayFail(*function, draft.leaves(input), draft.bound())) {
    if (!DoesWork(*function)) return false;
    return decline(absl::StrCat(
        draft.name(map),
        " may fail, and errors of elements that are left out would not be "
        "seen",
        Saving(draft, map, id, context), "; allow it with may_hide_errors"));
  }
  Node filter = Like(draft.node(id));
  *filter.mutable_filter()->mutable_predicate() =
      WithArguments(*predicate, *below);
  const absl::StatusOr<int> lower = draft.Add(std::move(filter), {input});
  if (!lower.ok()) return false;
  const absl::StatusOr<int> upper = draft.Add(draft.node(map), {*lower});
  if (!upper.ok()) return false;
  Remark remark = context.Note(draft, {map, id},
                               "elements that are left out are not computed");
  return draft.Replace(id, *upper) && context.Applied(std::move(remark));
}

}  // namespace penstock::plan
