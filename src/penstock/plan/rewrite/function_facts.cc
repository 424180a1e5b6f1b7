#include "penstock/plan/rewrite/function_facts.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "penstock/base/status.h"
#include "penstock/functions/function.h"
#include "penstock/plan/convert.h"

namespace penstock::plan {
namespace {

using Set = absl::flat_hash_set<std::string>;

// Item by item, never wrong once shapes fit.
const Set& Elementwise() {
  static const Set* const names = new Set({
      "abs",           "add",         "arctan",       "bitwise_and",
      "bitwise_or",    "bitwise_xor", "cast",         "ceil",
      "clip",          "cos",         "equal",        "exp",
      "expm1",         "floor",       "floor_divide", "greater",
      "greater_equal", "invert",      "isfinite",     "isinf",
      "isnan",         "left_shift",  "less",         "less_equal",
      "log",           "log10",       "log1p",        "log2",
      "logical_and",   "logical_not", "logical_or",   "logical_xor",
      "maximum",       "minimum",     "mod",          "multiply",
      "negative",      "not_equal",   "positive",     "power",
      "reciprocal",    "right_shift", "round",        "sign",
      "sin",           "sqrt",        "square",       "subtract",
      "tan",           "tanh",        "true_divide",  "trunc",
      "where",
  });
  return *names;
}

// Never wrong of a value whose rank is known.
const Set& Certain() {
  static const Set* const names =
      new Set({"all", "any", "expand_dims", "mean", "ones_like", "prod", "rank",
               "shape", "size", "sum", "transpose", "zeros_like"});
  return *names;
}

// Whether shapes that are not known yet are sure to broadcast.
bool SurelyBroadcast(absl::Span<const penstock::TensorSpec* const> args) {
  int unknown = 0;
  bool has_others = false;
  for (const penstock::TensorSpec* arg : args) {
    if (!arg->shape.is_fully_known()) {
      ++unknown;
    } else if (arg->shape.rank() > 0) {
      has_others = true;
    }
  }
  return unknown == 0 || (unknown == 1 && !has_others);
}

bool IsNumeric(const penstock::TensorSpec& spec) {
  return spec.dtype != penstock::DType::kString;
}

StepFacts FactsOfCall(const Function::Call& call, penstock::TensorSpec spec,
                      absl::Span<const StepFacts> steps) {
  StepFacts facts;
  facts.spec = std::move(spec);
  facts.may_fail = true;
  const functions::Function* function =
      functions::FindFunction(call.function());
  if (function == nullptr) return facts;
  facts.is_random = function->is_random;
  std::vector<const penstock::TensorSpec*> args;
  for (uint32_t arg : call.args()) args.push_back(&steps[arg].spec);
  const bool is_numeric =
      IsNumeric(facts.spec) &&
      std::all_of(args.begin(), args.end(),
                  [](const auto* each) { return IsNumeric(*each); });
  if (!is_numeric) return facts;
  if (Elementwise().contains(call.function())) {
    facts.is_elementwise = true;
    facts.may_fail = !SurelyBroadcast(args) ||
                     (call.function() == "power" && !IsFloat(facts.spec.dtype));
  } else if (Certain().contains(call.function())) {
    facts.may_fail =
        !std::all_of(args.begin(), args.end(),
                     [](const auto* each) { return each->shape.has_rank(); });
  }
  return facts;
}

}  // namespace

bool IsNative(const Function& function) {
  return !function.has_dataset() && !function.has_python();
}

absl::StatusOr<std::vector<StepFacts>> FindStepFacts(
    const Function& function, absl::Span<const penstock::TensorSpec> arguments,
    absl::Span<const penstock::TensorSpec> bound) {
  Function all = function;
  all.clear_outputs();
  for (int i = 0; i < all.steps_size(); ++i) all.add_outputs(i);
  PENSTOCK_ASSIGN_OR_RETURN(functions::Program program,
                            MakeProgram(all, arguments, bound));
  std::vector<StepFacts> facts;
  facts.reserve(function.steps_size());
  for (int i = 0; i < function.steps_size(); ++i) {
    const Function::Step& step = function.steps(i);
    const penstock::TensorSpec& spec = program.output_specs()[i];
    if (step.has_call()) {
      facts.push_back(FactsOfCall(step.call(), spec, facts));
    } else {
      facts.push_back({.spec = spec});
    }
  }
  return facts;
}

bool HasCalls(const Function& function) {
  return std::any_of(function.steps().begin(), function.steps().end(),
                     [](const auto& step) { return step.has_call(); });
}

bool MayFail(const Function& function,
             absl::Span<const penstock::TensorSpec> arguments,
             absl::Span<const penstock::TensorSpec> bound) {
  if (!IsNative(function)) return true;
  const absl::StatusOr<std::vector<StepFacts>> facts =
      FindStepFacts(function, arguments, bound);
  return !facts.ok() ||
         std::any_of(facts->begin(), facts->end(),
                     [](const StepFacts& each) { return each.may_fail; });
}

std::optional<int64_t> RowBytes(absl::Span<const penstock::TensorSpec> leaves) {
  int64_t bytes = 0;
  for (const penstock::TensorSpec& leaf : leaves) {
    if (!IsNumeric(leaf) || !leaf.shape.is_fully_known()) return std::nullopt;
    bytes += NumItems(leaf.shape.ToShape()) *
             static_cast<int64_t>(ItemSize(leaf.dtype));
  }
  return bytes;
}

}  // namespace penstock::plan
