// What distribute() makes of a pipeline: rows that workers compute, and what of
// it is left to this engine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// The plan that begins with the rows that come of workers running `input`, as
// `node` asks for: a Received whose distribution lacks only the plan. Nodes of
// `input` that cannot be run in shares follow it (plan/divide.h). Where one of
// these picks rows by their place, shares arrive in order, asked for or not.
// InvalidArgument, located, if `input` cannot be run by workers, or not as it
// is asked for: says what to do.
absl::StatusOr<Plan> Distribute(const Plan& input, Node node);

// Whether a distribution that came from anywhere may be run; gives the spec of
// the rows that workers send.
absl::StatusOr<ElementSpec> CheckDistribution(const Distribution& distribution);

// A pipeline is distributed at most so many times, one inside the other.
inline constexpr int kMaxLevels = 4;

// What whoever runs the plan reads from other workers: distributions of its
// nodes and of datasets inside functions, but not those inside a distribution's
// own plan.
std::vector<const Distribution*> DistributionsIn(const Plan& plan);

// Leaves out the files with a caller's credentials, at all levels: whoever runs
// the plan has its own.
void DropCredentials(Plan& plan);

// Gives every instance of the plan another number, those of plans inside
// functions included.
void ForInstances(Plan& plan, const std::function<uint64_t(uint64_t)>& change);

// Ids of the captures that a plan names, each once. Of distributions inside it:
// what their workers are given.
std::vector<std::string> CapturesOf(const Plan& plan);

}  // namespace penstock::plan
