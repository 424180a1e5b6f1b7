// Knobs, as they were chosen, for an iterator that runs.
#pragma once

#include "absl/status/status.h"
#include "penstock/knobs.pb.h"
#include "penstock/session/frame_sender.h"

namespace penstock::session {

// Puts `knobs` in force, and no others. InvalidArgument or FailedPrecondition,
// and nothing is set, if a node is not there or its rows may not be kept.
absl::Status ApplyKnobs(const plan::Knobs& knobs, FrameSender& sender);

}  // namespace penstock::session
