// The frames of a production that are here, and how far its readers are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "penstock/service/worker/out_frame.h"

namespace penstock::service {

// A production's frames come in order, and go in order; meanwhile each reader
// has them at its own pace. With several lanes each has frames of its own, at
// the same positions, and a reader reads one lane.
//
// A frame is *wanted* as long as some reader has not had it, and *needed* if it
// must wait for one. Who is late is waited for by nobody. WAIT: a frame is
// needed that a reader has not had who is not late. SKIP: one that nobody has
// had, if any reader is not late.
//
// The oldest frames of a lane may be on disk. There they take no room, and go
// when they are wanted no more.
//
// A pure state machine: no clock, no lock. Not thread-safe.
class FrameWindow final {
 public:
  enum class Policy { kWait, kSkip };

  // `lanes`: 1 if all readers have everything.
  FrameWindow(size_t lanes, Policy policy) : policy_(policy), lanes_(lanes) {}

  // The frames that come begin with the item at `position`. REQUIRES: there
  // were none.
  void Begin(uint64_t position);
  bool has_begun() const { return has_begun_; }
  // The next frame of each lane, or one for all of them.
  void Add(std::vector<OutFrame> frames);
  // No more come.
  void End(uint64_t digest);
  bool has_end() const { return end_.has_value(); }
  // After all frames that came.
  uint64_t next_position() const { return next_position_; }

  void AddReader(uint64_t reader, size_t lane, uint64_t from);
  void RemoveReader(uint64_t reader);
  void Seek(uint64_t reader, uint64_t from);
  void SetLate(uint64_t reader, bool is_late);
  size_t num_readers() const { return readers_.size(); }
  // Where a reading begins that has all that some reader wants.
  uint64_t least_wanted() const;
  // All items of the lane from `from` on are here, or will come.
  bool Covers(size_t lane, uint64_t from) const;
  // Something for the reader is here.
  bool HasMore(uint64_t reader) const;
  // A reader that is not late has not had the end.
  bool is_driven() const;

  struct Taken {
    std::optional<OutFrame> frame;  // unset: not yet
    bool is_missing = false;        // WAIT: the next is not here any more
    uint64_t skipped = 0;           // SKIP: so many items before it are missing
    bool was_had = false;           // by another reader
  };
  Taken Take(uint64_t reader);
  // Where the reader goes on.
  uint64_t next_of(uint64_t reader) const { return readers_.at(reader).next; }
  bool has_had_all(uint64_t reader) const {
    return readers_.at(reader).has_end;
  }

  size_t num_frames() const;
  // Of frames that are needed.
  int64_t needed_bytes() const;
  bool has_needed() const { return needed_frames() > 0; }
  size_t needed_frames() const;

  enum class Spare {
    kUnwanted,  // what every reader has had
    kUnneeded,  // what is not waited for
  };
  struct Evicted {
    OutFrame frame;
    bool was_wanted = false;
  };
  // Gives up the oldest frame that may go; unset: none may. `for_itself`: to
  // make more of the same, for which what nobody has had goes only if a reader
  // is not late: else all would be computed for nobody.
  std::optional<Evicted> Evict(Spare spare, bool for_itself);

  struct ToSpill {
    size_t lane = 0;
    OutFrame frame;
  };
  // Frames of up to about `bytes` that somebody has had, and somebody has not:
  // the oldest of each lane. What is before them goes. They stay as they are
  // until Spilled() or KeepUnspilled(); until then none may be picked again.
  // WAIT only.
  std::vector<ToSpill> PickToSpill(int64_t bytes);
  // Gives the memory that is not needed any more.
  Owner Spilled(const ToSpill& picked,
                std::shared_ptr<const SpillFile::Piece> piece);
  void KeepUnspilled();
  // What was on disk is lost.
  void LoseSpilled();

 private:
  struct Held {
    OutFrame frame;
    int64_t bytes_before = 0;  // of all that came before it in its lane
    bool is_picked = false;    // to be spilled
  };
  struct Lane {
    std::deque<Held> frames;
    size_t spilled = 0;  // so many of the first are on disk
    int64_t bytes = 0;   // of all that came
    uint64_t had = 0;    // somebody has had what is before it
  };
  struct Reader {
    size_t lane = 0;
    uint64_t next = 0;
    bool is_late = false;
    bool has_end = false;
  };

  // The first frame that has items from `position` on; or the lane's end.
  static std::deque<Held>::const_iterator FirstAfter(const Lane& lane,
                                                     uint64_t position);
  // Frames of the lane that end at or before it are not needed.
  uint64_t NeededFrom(size_t lane) const;
  uint64_t WantedFrom(size_t lane) const;
  // What is on disk and wanted no more goes.
  void DropSpilled();

  const Policy policy_;
  std::vector<Lane> lanes_;
  std::map<uint64_t, Reader> readers_;
  bool has_begun_ = false;
  uint64_t next_position_ = 0;
  std::optional<OutFrame> end_;  // without items
};

}  // namespace penstock::service
