// A frame whose bytes lie in several places, as they were computed.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "penstock/data/buffer.h"
#include "penstock/data/chunk.h"
#include "penstock/service/worker/item_digest.h"

namespace penstock::service {

struct FrameParts {
  std::vector<Buffer> parts;  // follow each other
  BlockSums sums;             // of some of their blocks
  size_t chunk_bytes = 0;
  size_t bytes = 0;
};

// An encoded chunk, and then `lineage`, if enough of it need not be copied to
// be worth it; else null.
std::shared_ptr<FrameParts> MakeParts(const Chunk& chunk, const Buffer& lineage,
                                      BlockSums sums);

// All in one place.
Buffer Joined(const FrameParts& frame);

}  // namespace penstock::service
