// Rounds gathered into chunks, one for each lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/data/builder.h"
#include "penstock/data/frame_memory.h"
#include "penstock/service/worker/round_maker.h"

namespace penstock::service {

// Small rows of one shape are copied as strides, large ones one by one to where
// they are to lie. Not thread-safe.
class LaneBuilder final {
 public:
  explicit LaneBuilder(size_t lanes) : lanes_(lanes) {}

  int64_t rounds() const { return rounds_; }
  // Whether they can join those already here (ChunkBuilder::Fits).
  bool Fits(const RoundMaker::Rounds& rounds) const;
  // Without the first `skip` of them. REQUIRES: Fits(rounds).
  void Add(const RoundMaker::Rounds& rounds, int64_t skip = 0);
  // By lane, each with a row for each round; then there are none.
  std::vector<Chunk> Build(FrameMemory* frames);

 private:
  std::vector<ChunkBuilder> lanes_;
  int64_t rounds_ = 0;
};

}  // namespace penstock::service
