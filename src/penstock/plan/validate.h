// Whether a plan from anywhere may be run.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// Arrays larger than this belong into captures.
inline constexpr int64_t kMaxPlanBytes = int64_t{16} << 20;

// Checks the whole plan as if nothing in it could be trusted: every node by the
// builder's rules, and that the specs and cardinalities it carries are those
// that follow. What passes may be run. InvalidArgument, located.
absl::Status Validate(const Plan& plan);

// Whether a run may be given these.
absl::Status ValidateOptions(const Options& options);

// The part of it that is not about any one node: how many there are, and how
// many bytes.
absl::Status CheckLimits(const Plan& plan);

}  // namespace penstock::plan
