// Memory of another process, as bytes of this one.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "penstock/base/socket.h"
#include "penstock/data/buffer.h"

namespace penstock::pool {

// Without a copy: of a process that means no harm. `memory` may be closed.
absl::StatusOr<Buffer> MapOf(const Descriptor& memory, uint64_t bytes);

// A copy, of memory that may be shorter than it should be, or change.
absl::StatusOr<Buffer> ReadFrom(const Descriptor& memory, uint64_t bytes);

Buffer CopyOf(const Buffer& from);

}  // namespace penstock::pool
