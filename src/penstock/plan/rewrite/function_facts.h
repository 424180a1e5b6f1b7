// What is known of a recorded function without running it: which of its steps
// can go wrong, and which compute item by item.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/spec.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

struct StepFacts {
  penstock::TensorSpec spec;
  bool is_random = false;
  // May make a row an error. Of calls; unknown functions may.
  bool may_fail = false;
  // A call that computes each item from the items at its place, as numpy
  // broadcasts them, and from nothing else.
  bool is_elementwise = false;
};

// By step. InvalidArgument if the function does not fit its arguments.
absl::StatusOr<std::vector<StepFacts>> FindStepFacts(
    const Function& function, absl::Span<const penstock::TensorSpec> arguments,
    absl::Span<const penstock::TensorSpec> bound);

// Neither Python nor one that makes datasets.
bool IsNative(const Function& function);

// Whether it computes anything.
bool HasCalls(const Function& function);

// Whether some step may fail; what cannot be looked into may.
bool MayFail(const Function& function,
             absl::Span<const penstock::TensorSpec> arguments,
             absl::Span<const penstock::TensorSpec> bound);

// The bytes of a row of these, if that is known before there is one.
std::optional<int64_t> RowBytes(absl::Span<const penstock::TensorSpec> leaves);

}  // namespace penstock::plan
