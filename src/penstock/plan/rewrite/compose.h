// Recorded functions taken apart and put together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/spec.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// The argument that output `number` of the function is, as it is; nothing if it
// is computed.
std::optional<uint32_t> PassedArgument(const Function& function, int number);

// The arguments that the function looks at, ascending.
std::vector<uint32_t> ArgumentsOf(const Function& function);

// The function with argument a replaced by argument to[a]. REQUIRES: `to` has
// an entry for each that it has a step for, whether it looks at it or not.
Function WithArguments(Function function, absl::Span<const uint32_t> to);

// Says of each step that does not say it yet which node it is of: errors of a
// function that moves to another node still name this one.
void SetOrigin(Function& function, const std::string& node,
               const Location& made_at);

// `second` of what `first` returns, with the steps of both in their order. The
// output is that of `second`. Nothing if `second` reads an output of `first`
// that is a constant: a call of constants follows other rules than one of
// values. REQUIRES: both are native, and say where their steps come from.
std::optional<Function> Compose(const Function& first, const Function& second);

// By step: whether an output needs it.
std::vector<bool> NeededSteps(const Function& function);

// The function with these steps alone. REQUIRES: outputs and steps that stay
// need none that goes; it is native and not random.
Function OnlySteps(const Function& function, const std::vector<bool>& stays);

// Steps that nobody reads left out, unless they may fail: their errors are
// seen. REQUIRES: it is native; steps of a random function keep their numbers
// and stay.
absl::StatusOr<Function> WithoutDeadSteps(
    Function function, absl::Span<const penstock::TensorSpec> arguments,
    absl::Span<const penstock::TensorSpec> bound);

// A function that passes on these arguments, as a tuple.
Function Projection(absl::Span<const uint32_t> arguments);

// A tuple of so many tensors, whose specs nobody looks at.
ElementSpec TupleOfTensors(int count);

}  // namespace penstock::plan
