// Rewriting a plan as it was decided before: in another process, for a plan
// that has grown since, after a state.
#pragma once

#include "absl/status/statusor.h"
#include "penstock/plan.pb.h"
#include "penstock/plan/rewrite/rewrite.h"
#include "penstock/rewrite.pb.h"

namespace penstock::plan {

// What was applied to a plan, as little as is needed to do it again: the passes
// that changed something, and what was measured if it made a difference.
// REQUIRES: `rewritten` is what Rewrite(plan, options) gave, with changes.
Rewriting ToRewriting(const Plan& plan, const RewriteOptions& options,
                      const Rewritten& rewritten);

// The first nodes of the plan rewritten, and those that were appended since on
// top of them, with the keys and names that they have in `plan`.
//
// FailedPrecondition if that is not what it was when it was decided (another
// version rewrites otherwise; or what was appended would notice, as random
// functions notice lineages), or if an appended cache would hear that the
// number of rows is known now; InvalidArgument for what is no rewriting of this
// plan.
absl::StatusOr<Plan> Apply(const Plan& plan, const Rewriting& rewriting);

}  // namespace penstock::plan
