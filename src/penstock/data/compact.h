// Chunks to be kept for long.
#pragma once

#include "absl/status/statusor.h"
#include "penstock/data/chunk.h"

namespace penstock {

// A copy that holds on to nothing but itself, without lineage: views into file
// blocks would keep the blocks.
absl::StatusOr<Chunk> Compact(const Chunk& chunk);

}  // namespace penstock
