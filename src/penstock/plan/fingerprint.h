// A plan's name: what it computes, not where it was written.
#pragma once

#include <string>
#include <vector>

#include "penstock/plan.pb.h"

namespace penstock::plan {

// 32 hexadecimal digits, equal on every machine and in every version for plans
// that mean the same. Locations, names of functions, instance ids, and knobs
// (parallelism, prefetch, buffer bytes) do not count.
std::string Fingerprint(const Plan& plan);

// The same of what each node gives, by place: nodes after it do not count.
std::vector<std::string> NodeFingerprints(const Plan& plan);

}  // namespace penstock::plan
