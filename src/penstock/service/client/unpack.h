// Frames as they were before they travelled.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "penstock/data/buffer.h"
#include "penstock/worker.pb.h"

namespace penstock::service {

// Frames are never larger: a header that says so is not believed.
inline constexpr uint64_t kMaxFrameBytes = uint64_t{4} << 30;

inline constexpr size_t kMaxHeaderBytes = 1 << 16;

// DataLoss: a frame is not as it was sent.
absl::Status Damaged(absl::string_view what);

// What the header's bytes say, if `crc32c` is theirs. A header that came
// damaged would have rows taken for others, or left out.
absl::StatusOr<FrameHeader> ParseHeader(std::string_view bytes,
                                        uint32_t crc32c);

// `packed` is all of a frame as it came; without compression it is given back.
// DataLoss if it is not what its header says.
absl::StatusOr<Buffer> Unpack(const FrameHeader& head, Buffer packed);

}  // namespace penstock::service
