// A plan for those who want to see what elements look like.
#pragma once

#include "penstock/plan.pb.h"

namespace penstock::plan {

// Leaves out of `plan` what only delays, orders or repeats its elements
// (shuffle, cache, prefetch, repeat, options): its first elements are then some
// of those that it has, soon. REQUIRES: it is valid.
void KeepForSample(Plan& plan);

}  // namespace penstock::plan
