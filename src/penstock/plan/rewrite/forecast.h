// What a run of a rewritten plan would have shown, from a run of the plan
// before it. The tuner then chooses for a plan that has not run yet.
//
// Nodes keep their names, so that what a row costs in a node is known. What
// changes is how many rows come: a filter that went before a map lets fewer
// through to it. Work that two nodes did is done by the one that they became,
// nodes that are gone cost nothing, and no node costs more than it did. Where a
// pass leaves out some steps of a function, that is not counted: the forecast
// is rather too low. Nor is the small part of a map that a filter does before
// it (push_filter).
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "penstock/plan.pb.h"
#include "penstock/snapshot.pb.h"

namespace penstock::plan {

// A plan that could be run, as its snapshots describe it.
struct Planned {
  const Plan* plan = nullptr;
  std::string fingerprint;
  // Inputs before users, and the node that a function is in before those in it;
  // counters are not looked at.
  std::vector<Snapshot::Node> nodes;
  uint32_t root = 0;
};

// Of the times of those seen; rows at the root are those that were seen there.
// Snapshots at the beginning that have other nodes than the last one are left
// out; nothing, if they come later.
std::vector<Snapshot> Forecast(absl::Span<const Snapshot> seen,
                               const Planned& planned);

}  // namespace penstock::plan
