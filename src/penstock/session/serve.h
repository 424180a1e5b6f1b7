// The engine's main loop.
#pragma once

#include "absl/status/status.h"
#include "penstock/base/socket.h"

namespace penstock::session {

// Serves one trainer until it closes its control socket, or dies. Returns OK
// in both cases.
absl::Status Serve(Descriptor control, Descriptor service);

}  // namespace penstock::session
