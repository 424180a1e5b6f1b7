// Snapshots: what was measured of a run, checked, and cut into windows.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/plan.pb.h"
#include "penstock/snapshot.pb.h"

namespace penstock::plan {

inline constexpr uint32_t kSnapshotVersion = 1;

// Whether the snapshot can be reasoned about: a version that is known, at most
// kMaxNodes nodes with numbers of their own, inputs that are there and lead in
// no circle, a root, histograms of at most 65 buckets, finite numbers, cores.
absl::Status ValidateSnapshot(const Snapshot& snapshot);

// What happened between two snapshots of one run, both valid: totals are
// differences, and whatever is said of "now" is as in `after`. Knobs that
// changed in between, another plan or run, or totals that fell are
// FailedPrecondition: such a window means nothing.
absl::StatusOr<Snapshot> WindowBetween(const Snapshot& before,
                                       const Snapshot& after);

// Whether the two would be the same in force, choosers included.
bool SameKnobs(const Knobs& a, const Knobs& b);

// Fills in what the plan says of a node: operator, name, source line,
// cardinality, and the facts about randomness, Python and order. Numbers of
// nodes are the caller's.
void Describe(const Plan& plan, int node, Snapshot::Node& out);

}  // namespace penstock::plan
