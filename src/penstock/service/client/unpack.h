// Frames as they were before they travelled.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "penstock/data/buffer.h"
#include "penstock/worker.pb.h"

namespace penstock::service {

// Frames are never larger: a header that says so is not believed.
inline constexpr uint64_t kMaxFrameBytes = uint64_t{4} << 30;

// `packed` is all of a frame as it came; without compression it is given back.
// DataLoss if it is not what its header says.
absl::StatusOr<Buffer> Unpack(const FrameHeader& head, Buffer packed);

}  // namespace penstock::service
