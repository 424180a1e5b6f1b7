// What padding costs, and boundaries that would make it cost less.
#pragma once

#include "penstock/report.pb.h"
#include "penstock/snapshot.pb.h"

namespace penstock::tuner {

// Says of the report's nodes what `last` counted since the run began, and puts
// a fix among the others, by its gain, where other buckets would waste much
// less. Those are the user's to choose: they decide which elements come
// together.
// REQUIRES: the nodes are in the report.
void AddPadding(const plan::Snapshot& last, plan::Report& report);

}  // namespace penstock::tuner
