// What computes a bundle once for several readers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "penstock/data/chunk.h"
#include "penstock/data/frame_memory.h"
#include "penstock/engine/executor.h"
#include "penstock/service.pb.h"
#include "penstock/service/worker/item_digest.h"
#include "penstock/service/worker/item_gatherer.h"
#include "penstock/service/worker/lane_builder.h"
#include "penstock/service/worker/out_frame.h"
#include "penstock/service/worker/round_maker.h"

namespace penstock::service {

class Productions;

// A task on the executor. It asks Productions what to do, and gives the frames
// that it makes to it; there they are read. With lanes, items are put into
// rounds (RoundMaker) and each lane gets frames of its own, all at once:
// position p is round p; after the rounds come spares, and then loose rows, as
// frames for all lanes. Rounds of a split that are not over are spares, too.
class Production final : public engine::Task {
 public:
  struct Options {
    std::weak_ptr<Productions> owner;
    uint64_t serial = 0;  // what the owner knows it by
    uint32_t lanes = 0;   // 0: no rounds
    std::optional<Split> split;
    std::shared_ptr<FrameMemory> memory;
    uint32_t first_segment = 0;
    engine::Instances* instances = nullptr;
    // Called without locks by the executor's threads.
    std::function<void()> on_computed;  // or it has failed
    std::function<void(bool is_stalled)> on_stalled;
  };
  Production(engine::Executor* executor, Options options);

  // Somebody waits for the next frame, or nobody does.
  void SetReaderWaiting(bool is_waiting) { is_reader_waiting_ = is_waiting; }

 protected:
  Next RunSlice() override;

 private:
  // A frame of each lane, or one for all, whose memory may not be there yet.
  struct Load {
    std::vector<Chunk> chunks;
    std::vector<OutFrame> made;  // of the first chunks
    OutFrame like;
  };
  enum class Made { kYes, kNoRoom, kFailed };

  absl::Status Start(const RunSetup& setup, uint64_t position, uint64_t skip);
  void Clear();
  // Makes loads of what was gathered.
  void LoadGathered();
  void LoadRounds(const RoundMaker::Rounds& rounds);
  // Split: rounds of another size, whose items go to all.
  void LoadAsSpares(const RoundMaker::Rounds& rounds);
  void AddSpares(const Chunk& chunk, int64_t row, int64_t items);
  void FlushRounds();
  void FinishRounds();
  void LoadForAll(ChunkBuilder& rows, bool is_spare);
  Made Emit(Productions& owner, bool is_alone);
  bool MakeFrame(Productions& owner, const Chunk& chunk, bool is_alone,
                 OutFrame& frame);
  void SetStalled(bool is_stalled);

  const Options options_;
  // Touched by the task alone.
  ItemGatherer items_;
  ItemDigest digest_;
  RoundMaker rounds_;
  LaneBuilder lanes_;
  ChunkBuilder spares_;
  bool has_finished_rounds_ = false;
  uint64_t position_ = 0;    // of what is loaded next
  uint64_t skip_until_ = 0;  // what is before it was made already
  std::deque<Load> loads_;
  bool is_last_ = false;  // after them comes the end
  bool needs_lineage_ = false;
  bool receives_ = false;  // other jobs' rows
  bool is_stalled_ = false;

  std::atomic<bool> is_reader_waiting_{false};
};

}  // namespace penstock::service
