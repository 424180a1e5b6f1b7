// What this worker computes once for several leases (docs/design/0027).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/base/clock.h"
#include "penstock/base/mutex.h"
#include "penstock/engine/executor.h"
#include "penstock/io/io_pool.h"
#include "penstock/service.pb.h"
#include "penstock/service/worker/frame_window.h"
#include "penstock/service/worker/item_gatherer.h"
#include "penstock/service/worker/out_frame.h"
#include "penstock/service/worker/output_budget.h"
#include "penstock/service/worker/production.h"
#include "penstock/service/worker/spill_file.h"
#include "penstock/worker.pb.h"

namespace penstock::service {

// Leases with the same Sharing.production read one computation, each at its own
// pace (FrameWindow). It stops when it has no lease; its frames stay for who
// comes later, until room is needed.
//
// Room: all productions together have at most 3/4 of the worker's budget, and
// of that each an even share for frames that are needed. The oldest frames of
// the oldest production go first: those that all have had, then those that only
// readers have not had for whom nobody waits (Policy, or `patience`). A
// production none of whose frames is needed may always make one more.
//
// With a file to spill to (WAIT), frames that some have had and some not are
// written there first, and wait there: nobody is waited for while it has room.
//
// What is on its way to readers that nobody waits for (SKIP), or looked at by
// them, may be 3/4 of that. Beyond it, runs that have more than their even
// share get bytes instead of a look at frames, and of these at most an even
// share of half of that room at once. So those that have stopped take no memory
// beyond that.
//
// A reader is late whose run has taken nothing here for `patience`, although it
// could. If frames that it wants have gone (WAIT), another production under the
// same name computes them again from there.
//
// Thread-safe. Close() must be called before the executor ends.
class Productions final : public std::enable_shared_from_this<Productions> {
 public:
  struct Options {
    engine::Executor* executor = nullptr;
    std::shared_ptr<FrameMemory> memory;
    uint32_t first_segment = 0;  // what readers know the memory's first one by
    engine::Instances* instances = nullptr;
    std::shared_ptr<OutputBudget> budget;
    // Of frames that all who read have had, for who comes later: until there
    // are so many, each new one takes fresh memory, which costs.
    int64_t retained_bytes = int64_t{512} << 20;
    absl::Duration patience = absl::Seconds(30);
    const Clock* clock = &SteadyClock();
    std::shared_ptr<SpillFile> spill;  // null: nothing goes to disk
    io::IoPool* pool = nullptr;        // writes there
    // Of a production, without locks, by any thread.
    std::function<void(uint64_t production)> on_computed;
    std::function<void(uint64_t production, bool is_stalled)> on_stalled;
  };
  static std::shared_ptr<Productions> Make(Options options);
  ~Productions();

  struct Joined {
    std::shared_ptr<FrameSource> frames;
    // All that it reads is here, or nothing of it will be: there is nothing to
    // compute.
    bool is_ready = false;
    bool needs_setup = false;  // Begin() was not called for it
  };
  // The frames of `lease`, until they are closed. REQUIRES: it has `sharing`.
  Joined Join(const Lease& lease) ABSL_LOCKS_EXCLUDED(mutex_);
  // Some lease reads it.
  bool IsWanted(uint64_t production) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Has it computed, or fail.
  void Begin(uint64_t production, absl::StatusOr<RunSetup> setup)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // Looks who is late, and has others go on. Gives when it is worth looking
  // again; unset: not before another lease has come.
  std::optional<int64_t> LookWhoIsLate() ABSL_LOCKS_EXCLUDED(mutex_);
  // Frees frames that nobody waits for, as many bytes if there are as many.
  void MakeRoom(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  WorkerReport::Shared Report() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t num_running() const ABSL_LOCKS_EXCLUDED(mutex_);

  // For the task of a production.
  struct Order {
    enum What {
      kStop,  // nobody reads it: free all that it holds
      kIdle,  // there is nothing to do
      kFull,  // until there is room
      kMake,
    };
    What what = kIdle;
    bool is_alone = false;  // none of its frames is needed
    // Set: begin there first, with `setup`, and leave out frames before
    // `skip_until`.
    std::optional<uint64_t> begin;
    uint64_t skip_until = 0;
    std::optional<RunSetup> setup;
  };
  Order Ask(uint64_t serial) ABSL_LOCKS_EXCLUDED(mutex_);
  // The next frames (FrameWindow::Add), none, and the end.
  void Add(uint64_t serial, std::vector<OutFrame> frames,
           std::optional<uint64_t> end_digest) ABSL_LOCKS_EXCLUDED(mutex_);
  void Fail(uint64_t serial, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Woken when frames were freed.
  void AwaitRoom(uint64_t serial) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Frames;    // of a lease
  class RoomBell;  // rung when frames were freed
  struct Entry {
    Entry(uint64_t serial, uint64_t production, uint32_t lanes,
          FrameWindow::Policy policy);

    uint64_t serial;
    uint64_t production;
    uint32_t lanes;
    FrameWindow window;
    std::shared_ptr<Production> task;
    std::optional<RunSetup> setup;
    bool needs_start = true;
    bool is_ahead = true;  // begins before somebody reads it
    bool is_stalled = false;
    std::optional<absl::Status> failure;
  };
  struct Reader {
    uint64_t production = 0;
    uint64_t run = 0;
    size_t lane = 0;
    uint32_t lanes = 0;
    std::optional<Split> split;
    FrameWindow::Policy policy = FrameWindow::Policy::kWait;
    uint64_t entry = 0;  // its serial; 0: all of it has gone
    std::weak_ptr<engine::Wakeable> waker;
    bool has_come = false;
    bool is_waiting = false;
    bool has_had_all = false;
    bool awaits_sent = false;  // before it may take more
    std::optional<absl::Status> closed;
  };
  // Of frames that readers have taken (SKIP), until they are sent or let go.
  struct Away {
    std::atomic<int64_t> bytes{0};
    std::atomic<int64_t> sending{0};  // of them, those that nobody looks at
  };
  struct Run {
    int64_t active_ns = 0;
    size_t readers = 0;
    std::shared_ptr<Away> away = std::make_shared<Away>();
  };
  using Wakers = std::vector<engine::Waker>;
  using Garbage = std::vector<FrameWindow::Evicted>;

  explicit Productions(Options options);

  // A frame that may be on disk.
  absl::StatusOr<std::optional<OutFrame>> TakeAny(uint64_t id,
                                                  const engine::Waker& reader)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Of a lease.
  void Attach(uint64_t id, const engine::Waker& reader, uint64_t from)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::optional<OutFrame>> Take(uint64_t id,
                                               const engine::Waker& reader)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Check(uint64_t id, const engine::Waker& reader) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Detach(uint64_t id, const engine::Waker& reader)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseReader(uint64_t id, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  Entry& AddEntry(const Reader& like) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Where it can begin at `from`: at best where it is, at worst in one that is
  // to begin.
  Entry& FindEntry(const Reader& reader, uint64_t from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has it read there.
  void Move(uint64_t id, Reader& reader, uint64_t from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(uint64_t id, Reader& reader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckLocked(const Reader& reader,
                           const engine::Waker& waker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Touch(const Reader& reader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether its run has too much on its way, where that is short.
  bool IsCrowding(const Reader& reader) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of each run that reads here, or still has something.
  int64_t ShareOf(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether it must wait until some of that was sent; it is woken.
  bool MustWaitForSent(Reader& reader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts it for the run as long as it lives.
  void SendAway(const Reader& reader, OutFrame& frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateLate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayAdd(uint64_t serial, Entry& entry, Garbage& garbage)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For the production `serial`, or 0. Gives how many bytes will be free.
  int64_t Evict(FrameWindow::Spare spare, uint64_t serial, int64_t bytes,
                Garbage& garbage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether frames are on their way to disk: those that wait are woken then.
  bool IsSpilling() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  using Picked = std::map<uint64_t, std::vector<FrameWindow::ToSpill>>;
  void Spill(Picked picked) ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets productions of which there is nothing, or too many.
  void Prune(Garbage& garbage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeStalled() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnRoom() ABSL_LOCKS_EXCLUDED(mutex_);
  Owner Charge(const OutFrame& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const int64_t limit_bytes_;
  const std::shared_ptr<std::atomic<int64_t>> bytes_;       // of living frames
  const std::shared_ptr<std::atomic<int64_t>> away_bytes_;  // of all runs
  // Some reader waits until bytes were sent.
  const std::shared_ptr<std::atomic<bool>> awaits_sent_;

  mutable Mutex mutex_;
  std::shared_ptr<RoomBell> bell_;  // constant
  std::unique_ptr<OutputBudget::Account> account_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by serial
  std::map<uint64_t, std::set<uint64_t>> serials_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Reader> readers_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Run> runs_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_serial_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t next_reader_ ABSL_GUARDED_BY(mutex_) = 1;
  bool is_spilling_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t spill_after_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  WorkerReport::Shared counts_ ABSL_GUARDED_BY(mutex_);
  // Productions that were computed before, the newest last.
  std::set<uint64_t> computed_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint64_t> computed_order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::service
