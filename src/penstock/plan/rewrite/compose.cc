#include "penstock/plan/rewrite/compose.h"

#include <algorithm>
#include <set>

#include "penstock/base/status.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/rewrite/function_facts.h"

namespace penstock::plan {
namespace {

// Gives every number of a step that `step` reads to `change`.
template <typename Change>
void ForEachRead(Function::Step& step, Change change) {
  if (step.has_call()) {
    for (uint32_t& arg : *step.mutable_call()->mutable_args()) change(arg);
  } else if (step.has_part()) {
    uint32_t call = step.part().call();
    change(call);
    step.mutable_part()->set_call(call);
  }
}

std::vector<bool> IsOutput(const Function& function) {
  std::vector<bool> is_output(function.steps_size(), false);
  for (uint32_t output : function.outputs()) is_output[output] = true;
  return is_output;
}

// Steps that those of `is_needed` need are needed, too.
void AddWhatTheyRead(const Function& function, std::vector<bool>& is_needed) {
  for (int i = function.steps_size() - 1; i >= 0; --i) {
    if (!is_needed[i]) continue;
    Function::Step step = function.steps(i);
    ForEachRead(step, [&](uint32_t& read) { is_needed[read] = true; });
  }
}

// Which steps something is done with: they are returned, or others read them.
// Recorded functions have a step for each argument, read or not.
std::vector<bool> ReadSteps(const Function& function) {
  std::vector<bool> is_read = IsOutput(function);
  for (Function::Step step : function.steps()) {
    ForEachRead(step, [&](uint32_t& read) { is_read[read] = true; });
  }
  return is_read;
}

}  // namespace

std::optional<uint32_t> PassedArgument(const Function& function, int number) {
  const Function::Step& step =
      function.steps(static_cast<int>(function.outputs(number)));
  if (!step.has_argument()) return std::nullopt;
  return step.argument();
}

std::vector<uint32_t> ArgumentsOf(const Function& function) {
  std::set<uint32_t> arguments;
  const std::vector<bool> is_read = ReadSteps(function);
  for (int i = 0; i < function.steps_size(); ++i) {
    const Function::Step& step = function.steps(i);
    if (step.has_argument() && is_read[i]) arguments.insert(step.argument());
  }
  return {arguments.begin(), arguments.end()};
}

Function WithArguments(Function function, absl::Span<const uint32_t> to) {
  for (Function::Step& step : *function.mutable_steps()) {
    if (step.has_argument()) step.set_argument(to[step.argument()]);
  }
  return function;
}

void SetOrigin(Function& function, const std::string& node,
               const Location& made_at) {
  const auto origin = static_cast<uint32_t>(function.origins_size());
  bool is_needed = false;
  for (Function::Step& step : *function.mutable_steps()) {
    if (step.has_origin() || !step.has_call()) continue;
    step.set_origin(origin);
    is_needed = true;
  }
  if (!is_needed) return;
  Function::Origin& added = *function.add_origins();
  added.set_node(node);
  *added.mutable_made_at() = made_at;
}

std::optional<Function> Compose(const Function& first, const Function& second) {
  Function both = first;
  both.clear_output();
  both.clear_outputs();
  *both.mutable_output() = second.output();
  both.set_name(second.name());
  *both.mutable_made_at() = second.made_at();
  const auto first_origin = static_cast<uint32_t>(both.origins_size());
  both.mutable_origins()->MergeFrom(second.origins());

  std::vector<uint32_t> numbers;  // of second's steps in `both`
  const std::vector<bool> is_read = ReadSteps(second);
  for (const Function::Step& step : second.steps()) {
    if (step.has_argument()) {
      const uint32_t from = first.outputs(static_cast<int>(step.argument()));
      if (first.steps(static_cast<int>(from)).has_constant() &&
          is_read[numbers.size()]) {
        return std::nullopt;
      }
      numbers.push_back(from);
      continue;
    }
    numbers.push_back(static_cast<uint32_t>(both.steps_size()));
    Function::Step& added = *both.add_steps() = step;
    ForEachRead(added, [&](uint32_t& read) { read = numbers[read]; });
    if (added.has_origin()) added.set_origin(added.origin() + first_origin);
  }
  for (uint32_t output : second.outputs()) both.add_outputs(numbers[output]);
  return both;
}

std::vector<bool> NeededSteps(const Function& function) {
  std::vector<bool> is_needed = IsOutput(function);
  AddWhatTheyRead(function, is_needed);
  return is_needed;
}

Function OnlySteps(const Function& function, const std::vector<bool>& stays) {
  Function pruned = function;
  pruned.clear_steps();
  pruned.clear_outputs();
  std::vector<uint32_t> numbers(function.steps_size(), 0);
  for (int i = 0; i < function.steps_size(); ++i) {
    if (!stays[i]) continue;
    numbers[i] = static_cast<uint32_t>(pruned.steps_size());
    Function::Step& added = *pruned.add_steps() = function.steps(i);
    ForEachRead(added, [&](uint32_t& read) { read = numbers[read]; });
  }
  for (uint32_t output : function.outputs()) {
    pruned.add_outputs(numbers[output]);
  }
  return pruned;
}

absl::StatusOr<Function> WithoutDeadSteps(
    Function function, absl::Span<const penstock::TensorSpec> arguments,
    absl::Span<const penstock::TensorSpec> bound) {
  if (IsRandom(function)) return function;
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<StepFacts> facts,
                            FindStepFacts(function, arguments, bound));
  std::vector<bool> is_needed = IsOutput(function);
  for (int i = 0; i < function.steps_size(); ++i) {
    if (facts[i].may_fail) is_needed[i] = true;
  }
  AddWhatTheyRead(function, is_needed);
  return OnlySteps(function, is_needed);
}

ElementSpec TupleOfTensors(int count) {
  ElementSpec tuple;
  tuple.mutable_tuple();
  for (int i = 0; i < count; ++i) {
    TensorSpec& leaf = *tuple.mutable_tuple()->add_items()->mutable_tensor();
    leaf.set_dtype(INT64);
    leaf.mutable_shape();
  }
  return tuple;
}

Function Projection(absl::Span<const uint32_t> arguments) {
  Function function;
  function.set_name("keep");
  for (uint32_t argument : arguments) {
    function.add_outputs(static_cast<uint32_t>(function.steps_size()));
    function.add_steps()->set_argument(argument);
  }
  *function.mutable_output() =
      TupleOfTensors(static_cast<int>(arguments.size()));
  return function;
}

}  // namespace penstock::plan
