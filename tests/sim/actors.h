// The processes of a simulated service, around the real state machines.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/service/client/client_state.h"
#include "penstock/service/dispatcher/dispatcher.h"
#include "penstock/service/store/memory_store.h"
#include "penstock/service/worker/worker_state.h"
#include "sim/clock.h"
#include "sim/cluster.h"
#include "sim/row_feed.h"
#include "sim/world.h"

namespace penstock::sim {

class DispatcherActor;
class WorkerActor;

// What all processes share.
struct Site {
  Site(World& the_world, const Plan& the_plan)
      : world(the_world), plan(the_plan) {}

  World& world;
  const Plan& plan;
  VirtualClock clock{world};
  std::shared_ptr<store::MemoryDisk> disk =
      std::make_shared<store::MemoryDisk>();
  std::vector<std::shared_ptr<DispatcherActor>> dispatchers;  // the last is it
  std::map<std::string, std::shared_ptr<WorkerActor>> workers;  // by address
  service::Manifest manifest;
  std::string failure;  // what an actor found wrong
  // Of the first generation: who computes a pass, and which one it has.
  std::map<uint64_t, uint64_t> worker_of_pass;
  std::map<uint64_t, uint64_t> pass_of_worker;
  bool may_reader_end = false;  // any was told that nothing is left
  std::function<void()> restart_dispatcher;

  // How often each was computed, by its production, and which bundle that is.
  std::map<uint64_t, int> computed;
  std::map<uint64_t, uint64_t> bundle_of_production;
  uint64_t seed = 0;             // of a group; 0: nobody has opened
  bool has_member_left = false;  // of it, any

  uint64_t ItemsOf(uint64_t bundle) const;
  // Of one of `slots` consumers.
  std::string JobOf(uint32_t slot, uint32_t slots) const;
  uint64_t DigestOf(uint64_t bundle) const;
  // Delivers once, never, or twice, sooner or later.
  void Send(const std::function<void()>& deliver);
  // The one that hears a message now: mostly the last.
  std::shared_ptr<DispatcherActor> Listening();
};

class DispatcherActor final
    : public std::enable_shared_from_this<DispatcherActor> {
 public:
  explicit DispatcherActor(Site& site);
  void Start();
  void Die();
  // Does nothing for a while, and then goes on as if nothing had been.
  void Pause(int64_t ms);
  bool is_dead() const { return is_dead_; }
  service::DurableDispatcher& dispatcher() { return *dispatcher_; }

  // `reply` runs when the answer is on its way, at this end.
  void OnWorker(const service::WorkerBeat& beat,
                std::function<void(const service::WorkerReply&)> reply);
  void OnClient(const service::ClientBeat& beat,
                std::function<void(const service::ClientReply&)> reply);
  void OnOpen(
      const service::OpenRequest& request,
      std::function<void(const absl::StatusOr<service::OpenReply>&)> reply);
  void OnRelease(const service::ReleaseRequest& request,
                 std::function<void()> reply);

 private:
  // Runs `handle` now or, when paused, later.
  void Handle(const std::function<void()>& handle);
  // Has the store write what is due, a little later.
  void WriteSoon();
  void Tick();

  Site& site_;
  store::MemoryStore store_;
  std::unique_ptr<service::DurableDispatcher> dispatcher_;
  bool is_dead_ = false;
  int64_t paused_until_ms_ = 0;
};

// A frame on its way to a reader.
struct Sent {
  service::FrameHead head;
  Row items;                // one for each of its positions
  uint64_t loose_from = 0;  // RowFeed::OnItems
};

class WorkerActor final : public std::enable_shared_from_this<WorkerActor> {
 public:
  WorkerActor(Site& site, uint64_t id, const std::string& address);
  void Start();
  void Die() { is_dead_ = true; }
  void Pause(int64_t ms);
  void Drain();
  bool is_dead() const { return is_dead_; }
  bool is_draining() const { return is_draining_; }
  const std::string& address() const { return address_; }

  // Sends frames until the end or until it cannot: `frame` gives false once
  // nobody listens; `broken` says why nothing more comes.
  void Read(const service::EpochId& epoch, uint64_t bundle, uint64_t attempt,
            uint64_t from, std::function<bool(const Sent&)> frame,
            std::function<void(const std::string&)> broken);

 private:
  struct Reading {
    service::EpochId epoch;
    uint64_t bundle;
    uint64_t attempt;
    uint64_t next;
    std::function<bool(const Sent&)> frame;
    std::function<void(const std::string&)> broken;
    bool is_counted = false;  // among the readings of its run
    int waits = 0;            // for its lease
  };
  // A lease that is being computed, or was.
  struct Run {
    service::Lease lease;
    int readings = 0;
    bool is_taken = false;  // a reader has all of it
    int64_t taken_ms = 0;   // when it drains: since when nobody reads it
  };
  void Beat();
  void Compute();
  void Begin(const service::Lease& lease);
  void Join(const service::Lease& lease);
  void OnComputed(const service::Lease& lease);
  void Go(std::shared_ptr<Reading> reading);
  // Nobody reads any more, or all was read.
  void End(const Reading& reading, bool is_taken);
  Run* FindRun(const Reading& reading);
  // As WorkerServer does when it drains.
  void HandOver();
  int64_t Paused() const;
  // A bundle that is for one worker went to that one.
  void CheckIsIts(const service::Lease& lease);

  Site& site_;
  const uint64_t id_;
  const std::string address_;
  service::WorkerState state_;
  bool is_dead_ = false;
  bool is_draining_ = false;
  uint64_t beats_ = 0;
  int64_t paused_until_ms_ = 0;
  std::map<uint64_t, Run> runs_;               // by attempt
  std::map<uint64_t, service::Lease> leases_;  // by attempt
  int64_t drains_since_ms_ = 0;
  // Productions that are here: how many of the first items have gone.
  std::map<uint64_t, uint64_t> gone_;
};

// A trainer and the engine beside it.
class ConsumerActor final : public std::enable_shared_from_this<ConsumerActor> {
 public:
  // What it goes on from: its own place in a checkpoint, with the order of rows
  // that was begun; or the places of all, however many there were; or that of
  // one of another number of members; or nothing.
  struct Begin {
    std::optional<Saved> own;
    std::vector<service::ConsumerState> all;
    std::optional<service::ConsumerState> resized_from;
    bool is_restored = false;  // all of them
    bool rejoins = false;      // a group that goes on, without a state
    // That it knows it was at, or that it is new at.
    std::optional<uint64_t> from_round;
  };
  ConsumerActor(Site& site, uint32_t slot, uint32_t slots, uint64_t number);
  void Start(Begin begin);
  // The whole process.
  void Die() { is_dead_ = true; }
  // The engine alone; another one takes its place.
  void KillEngine();
  // It has had enough.
  void Leave();
  // It takes no row from this one on. Unset: any.
  void StopAt(std::optional<uint64_t> row) { last_row_ = row; }

  std::string ToString() const;  // for people

  bool has_ended() const { return has_ended_; }
  bool has_failed() const { return has_failed_; }  // and was told so
  bool has_left() const { return has_left_; }
  // It came back without a state, and nobody knew any more where it was.
  bool is_lost() const { return is_lost_; }
  bool is_heard() const { return is_heard_; }  // that it has left
  uint32_t slot() const { return slot_; }
  uint32_t slots() const { return slots_; }
  const Begin& begin() const { return begin_; }
  // The trainer has had a row of it.
  bool has_taken() const { return has_taken_; }
  // That the trainer has next, of all that its group has; unset: it does not
  // know.
  std::optional<uint64_t> row() const;
  // What the trainer wrote down, and where it was then. A checkpoint's rows
  // since its place are not written down again.
  const std::vector<Item>& ledger() const { return ledger_; }
  const std::optional<Saved>& saved() const { return saved_; }
  // The same before each row, since it began. Of groups that are resized.
  const std::map<uint64_t, Saved>& history() const { return history_; }
  // Of the ledger, if it has joined others there.
  uint64_t first_row() const { return first_row_; }
  // Items that it was told to have missed.
  uint64_t missed() const;

 private:
  // Rows that go to the trainer together.
  struct Frame {
    std::deque<Row> rows;
    service::Journal::Pass journal;
    uint64_t place = 0;
    uint64_t held = 0;  // rows from the place to its first one
    bool is_taken = false;
  };
  struct Engine {
    uint64_t replaces = 0;  // as the dispatcher said
    std::optional<service::ClientState> client;
    std::optional<RowFeed> feed;
    std::deque<Frame> frames;
    std::deque<Row> expected;  // had before, and to be given once more
    uint64_t place = 0;        // that the last frame's state names
    std::deque<Row> held;      // rows from there on
    bool has_taken = false;    // the trainer, a frame of it
    uint64_t reads = 0;
    std::map<uint64_t, uint64_t> reading;       // bundle -> number of the read
    std::map<uint64_t, std::string> came_from;  // bundle -> worker
  };
  using EnginePtr = std::shared_ptr<Engine>;

  void Open(const EnginePtr& engine);
  void OnRefused(const absl::Status& status);
  void OnOpened(const EnginePtr& engine, const service::Opener& opener,
                const service::OpenReply& reply);
  void Beat(const EnginePtr& engine);
  void CheckSeed(uint64_t seed);
  void Act(const EnginePtr& engine,
           const service::ClientState::Actions& actions);
  bool OnFrame(const EnginePtr& engine, const std::string& address,
               const Sent& sent);
  void Fill(Engine& engine);
  void Take(Frame& frame);
  void SendRelease(const service::ReleaseRequest& request);
  void Train();
  // Of its group's rounds; 0: there are none.
  uint32_t lanes() const { return site_.plan.is_in_rounds ? slots_ : 0; }
  bool IsCurrent(const EnginePtr& engine) const {
    return !is_dead_ && engine == engine_;
  }

  Site& site_;
  const uint32_t slot_;
  const uint32_t slots_;
  const uint64_t number_;
  EnginePtr engine_;
  Begin begin_;
  uint64_t request_ = 0;      // that opens; the trainer's, not an engine's
  bool is_resuming_ = false;  // it was opened, and `saved_` is where it is
  bool has_taken_ = false;    // a frame, of any engine
  std::optional<Saved> saved_;
  std::map<uint64_t, Saved> history_;
  std::optional<uint64_t> last_row_;
  std::vector<Item> ledger_;
  uint64_t first_row_ = 0;
  bool is_dead_ = false;
  bool has_ended_ = false;
  bool has_failed_ = false;
  bool has_left_ = false;
  bool is_lost_ = false;
  bool is_heard_ = false;
  bool is_training_ = false;
};

}  // namespace penstock::sim
