// A plan for those who want to see what elements look like.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// Leaves out of `plan` what only delays, orders or repeats its elements
// (shuffle, cache, prefetch, repeat, options): its first elements are then some
// of those that it has, soon. REQUIRES: it is valid.
void KeepForSample(Plan& plan);

// Leaves out the cache of this name, to see what comes without it. NotFound if
// there is none; one that is made inside a function is not looked for.
// REQUIRES: the plan is valid.
absl::Status LeaveOutCache(const std::string& name, Plan& plan);

}  // namespace penstock::plan
