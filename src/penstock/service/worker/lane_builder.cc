#include "penstock/service/worker/lane_builder.h"

#include <algorithm>
#include <utility>

namespace penstock::service {
namespace {

// Rows above this many bytes are copied once only.
constexpr int64_t kSmallRowBytes = 512;

bool HasSmallRows(const Chunk& chunk) {
  return std::ranges::all_of(chunk.columns, [](const Column& column) {
    return column.is_dense() && column.row_bytes() <= kSmallRowBytes;
  });
}

}  // namespace

bool LaneBuilder::Fits(const RoundMaker::Rounds& rounds) const {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (!lanes_[i].Fits(rounds.rows.empty() ? *rounds.chunk
                                            : *rounds.rows[i].chunk)) {
      return false;
    }
  }
  return true;
}

void LaneBuilder::Add(const RoundMaker::Rounds& rounds, int64_t skip) {
  const int64_t count = rounds.count - skip;
  if (count <= 0) return;
  rounds_ += count;
  if (!rounds.rows.empty()) {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].Append(*rounds.rows[i].chunk, rounds.rows[i].row, 1);
    }
    return;
  }
  const auto stride = static_cast<int64_t>(lanes_.size());
  const int64_t begin = rounds.begin + skip * stride;
  const bool is_small = HasSmallRows(*rounds.chunk);
  std::vector<int32_t> rows(static_cast<size_t>(count));
  for (int64_t lane = 0; lane < stride; ++lane) {
    ChunkBuilder& to = lanes_[static_cast<size_t>(lane)];
    if (is_small) {
      for (int64_t r = 0; r < count; ++r) {
        rows[static_cast<size_t>(r)] =
            static_cast<int32_t>(begin + r * stride + lane);
      }
      to.Append(Gather(*rounds.chunk, rows), 0, count);
    } else {
      const int source = to.AddSource(*rounds.chunk);
      for (int64_t r = 0; r < count; ++r) {
        to.Append(source, begin + r * stride + lane, 1);
      }
    }
  }
}

std::vector<Chunk> LaneBuilder::Build(FrameMemory* frames) {
  rounds_ = 0;
  std::vector<Chunk> chunks;
  for (ChunkBuilder& lane : lanes_) chunks.push_back(lane.Build(frames));
  return chunks;
}

}  // namespace penstock::service
