// From a trace to what is shown: the report as a message, and predictions.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/report.pb.h"
#include "penstock/snapshot.pb.h"

namespace penstock::tuner {

// The snapshots at the end between which no knob changed and one run went on,
// without those in which it had just begun. The last alone, which is all of the
// run, if nothing came out in that part.
absl::Span<const plan::Snapshot> SteadyPart(
    absl::Span<const plan::Snapshot> snapshots);

// InvalidArgument for budgets that mean nothing; FailedPrecondition if too
// little was measured to say anything.
absl::StatusOr<plan::Report> MakeReport(
    absl::Span<const plan::Snapshot> snapshots, const plan::Budget& budget);

// What the rate would be after `changes`. NotFound for names of nodes that are
// not there.
absl::StatusOr<plan::Prediction> Predict(
    absl::Span<const plan::Snapshot> snapshots,
    absl::Span<const plan::Change> changes);

}  // namespace penstock::tuner
