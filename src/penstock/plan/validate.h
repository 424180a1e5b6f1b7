// Whether a plan from anywhere may be run.
#pragma once

#include "absl/status/status.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// Checks the whole plan as if nothing in it could be trusted: every node by the
// builder's rules, and that the specs and cardinalities it carries are those
// that follow.
absl::Status Validate(const Plan& plan);

}  // namespace penstock::plan
