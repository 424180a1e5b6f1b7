#include "penstock/plan/rewrite/growers_last.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/rewrite/compose.h"
#include "penstock/plan/rewrite/function_facts.h"

namespace penstock::plan {
namespace {

// The one value that a step computes its items from, constants aside; nothing
// if the step may not be moved.
std::optional<uint32_t> SourceOf(const Function& function,
                                 const std::vector<StepFacts>& facts,
                                 uint32_t number) {
  const Function::Step& step = function.steps(static_cast<int>(number));
  const StepFacts& own = facts[number];
  if (!step.has_call() || !own.is_elementwise || own.may_fail) {
    return std::nullopt;
  }
  std::optional<uint32_t> source;
  for (uint32_t arg : step.call().args()) {
    if (function.steps(static_cast<int>(arg)).has_constant()) continue;
    if (source.has_value() && *source != arg) return std::nullopt;
    source = arg;
  }
  if (!source.has_value() || !(facts[*source].spec.shape == own.spec.shape)) {
    return std::nullopt;
  }
  return source;
}

// Where an output is smallest on its way: a step, and those after it up to the
// output.
struct Cut {
  uint32_t at;
  std::vector<uint32_t> later;  // the nearest to the output first
};

Cut FindCut(const Function& function, const std::vector<StepFacts>& facts,
            uint32_t output) {
  Cut best = {output, {}};
  std::vector<uint32_t> later;
  uint32_t at = output;
  while (const auto source = SourceOf(function, facts, at)) {
    later.push_back(at);
    at = *source;
    if (ItemSize(facts[at].spec.dtype) < ItemSize(facts[best.at].spec.dtype)) {
      best = {at, later};
    }
  }
  return best;
}

// The steps after the cuts, as a function of what is there.
class Later final {
 public:
  explicit Later(const Function& whole) : whole_(whole) {
    function_.set_name(whole.name());
    *function_.mutable_made_at() = whole.made_at();
    *function_.mutable_output() = whole.output();
    *function_.mutable_origins() = whole.origins();
  }

  // Adds an output.
  void Add(const Cut& cut) {
    if (!numbers_.contains(cut.at)) {
      numbers_[cut.at] = static_cast<uint32_t>(function_.steps_size());
      function_.add_steps()->set_argument(static_cast<uint32_t>(cuts_.size()));
      cuts_.push_back(cut.at);
    }
    for (size_t i = cut.later.size(); i-- > 0;) Copy(cut.later[i]);
    function_.add_outputs(
        numbers_[cut.later.empty() ? cut.at : cut.later.front()]);
  }

  const Function& function() const { return function_; }
  const std::vector<uint32_t>& cuts() const { return cuts_; }

 private:
  void Copy(uint32_t number) {
    if (numbers_.contains(number)) return;
    Function::Step step = whole_.steps(static_cast<int>(number));
    for (uint32_t& arg : *step.mutable_call()->mutable_args()) {
      if (!numbers_.contains(arg)) {  // a constant
        numbers_[arg] = static_cast<uint32_t>(function_.steps_size());
        *function_.add_steps() = whole_.steps(static_cast<int>(arg));
      }
      arg = numbers_[arg];
    }
    numbers_[number] = static_cast<uint32_t>(function_.steps_size());
    *function_.add_steps() = std::move(step);
  }

  const Function& whole_;
  Function function_;
  std::map<uint32_t, uint32_t> numbers_;  // of whole_'s steps
  std::vector<uint32_t> cuts_;
};

}  // namespace

bool GrowersLast(Draft& draft, int id, PassContext& context) {
  if (!draft.node(id).has_shuffle()) return false;
  const int map = draft.input(id);
  const Function* function = NativeMapOf(draft.node(map));
  if (function == nullptr || IsRandom(*function) || draft.OnlyUser(map) != id) {
    return false;
  }
  const std::vector<penstock::TensorSpec> arguments =
      draft.leaves(draft.input(map));
  const auto facts = FindStepFacts(*function, arguments, draft.bound());
  if (!facts.ok()) return false;
  Later later(*function);
  bool is_worth_it = false;
  for (uint32_t output : function->outputs()) {
    const Cut cut = FindCut(*function, *facts, output);
    const penstock::PartialShape& shape = (*facts)[output].spec.shape;
    is_worth_it |=
        !cut.later.empty() && (!shape.has_rank() || shape.rank() > 0);
    later.Add(cut);
  }
  if (!is_worth_it) return false;

  Node first = draft.node(map);
  Function& early = *first.mutable_map()->mutable_function();
  early.clear_outputs();
  for (uint32_t cut : later.cuts()) early.add_outputs(cut);
  *early.mutable_output() =
      TupleOfTensors(static_cast<int>(later.cuts().size()));
  absl::StatusOr<Function> pruned =
      WithoutDeadSteps(early, arguments, draft.bound());
  if (!pruned.ok()) return false;
  early = *std::move(pruned);
  Node last = draft.node(map);
  *last.mutable_map()->mutable_function() = later.function();
  last.set_name(absl::StrCat(last.name(), ":late"));

  absl::StatusOr<int> top = draft.Add(std::move(first), {draft.input(map)});
  if (top.ok()) top = draft.Add(draft.node(id), {*top});
  if (top.ok()) top = draft.Add(std::move(last), {*top});
  if (!top.ok()) return false;
  Remark remark = context.Note(draft, {map, id},
                               "what only makes items larger is done after it");
  return draft.Replace(id, *top) && context.Applied(std::move(remark));
}

}  // namespace penstock::plan
