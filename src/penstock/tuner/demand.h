// From snapshots to the model: ratios of counters, and how sure they are.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/snapshot.pb.h"
#include "penstock/tuner/model.h"

namespace penstock::tuner {

// Taken where a snapshot does not say: between two threads of one machine.
inline constexpr double kUsualHandoffSeconds = 15e-6;
// The relative standard error of what one window alone tells.
inline constexpr double kOneWindowError = 0.1;

struct MeasureOptions {
  // Laws that earlier runs or earlier knobs have shown, by node. Others get
  // the prior.
  absl::flat_hash_map<uint32_t, Scaling> scalings;
};

// The model of a run between the first and the last snapshot; those between
// them make windows, whose variance is the standard error. A single snapshot is
// the window since the run began.
//
// In the steady state that is modelled, nodes below a full cache cost nothing.
// Time of tasks that had to share cores is corrected. CPU of Python processes
// is charged to the nodes by their time in them. Where nodes' CPU was not
// measured, it is their time, scaled to what the process used. Where no stages
// are given, nodes are run inline by who pulls them (layout.h).
//
// Snapshots that are not valid are InvalidArgument. FailedPrecondition if they
// make no windows, or if nothing reached the root.
absl::StatusOr<Model> Measure(absl::Span<const plan::Snapshot> snapshots,
                              const MeasureOptions& options = {});

}  // namespace penstock::tuner
