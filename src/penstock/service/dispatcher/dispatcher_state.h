// What the dispatcher knows and decides: jobs and their runs, epochs, workers,
// consumers. A state machine: messages and the time come in, replies and what
// must be written down go out.
//
// A reply may be sent once everything that was decided before it is durable:
// all `Writes::durable` of this and of earlier calls. If that fails, the
// process ends; nothing that was not told has happened.
//
// Written down: plans, runs, epochs and their manifests, whose bundles are, and
// (lazily) which are done. Everything else is soft: workers say in each beat
// what they hold, and clients what they want; after a restart both are known
// within a beat.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/service.pb.h"
#include "penstock/service/dispatcher/epoch_index.h"
#include "penstock/service/dispatcher/epoch_state.h"
#include "penstock/service/dispatcher/work_table.h"
#include "penstock/service/dispatcher/worker_places.h"

namespace penstock::service {

class DispatcherState final {
 public:
  struct Settings {
    int64_t lease_ms = 5'000;            // without a beat: a worker is lost
    int64_t client_timeout_ms = 60'000;  // without a beat: nobody is there
    int64_t run_timeout_ms = 300'000;    // without a consumer: a run is over
    // Without a run that uses it: a plan or manifest is deleted.
    int64_t unused_timeout_ms = 3'600'000;
    int max_crashes = 5;
    size_t most_records = 256;  // of bundles that are done, in an epoch
    // All that there are, in order (WorkerPlaces); none: whoever comes.
    std::vector<std::string> workers = {};
  };

  // `records`: all that the terms before have written. DataLoss names one that
  // makes no sense.
  static absl::StatusOr<std::unique_ptr<DispatcherState>> Make(
      const Settings& settings, uint64_t term, int64_t now_ms,
      const std::vector<store::Record>& records);

  uint64_t term() const { return term_; }

  // `keep`: it stays, whether or not it is used.
  void AddPlan(const std::string& id, const std::string& plan, bool keep,
               int64_t now_ms, Writes& writes);
  // Null: there is none.
  std::shared_ptr<const std::string> FindPlan(const std::string& id) const;
  // The id of a plan that is called by its id, or by a name that it has.
  std::string PlanOf(const std::string& called) const;
  // Whether a plan may have this name: InvalidArgument for one that looks like
  // something else, AlreadyExists if it is another's.
  absl::Status CheckName(const std::string& name, const std::string& id) const;
  void SetName(const std::string& name, const std::string& id, Writes& writes);
  // It is deleted in due time, once no job uses it. NotFound if it is not kept.
  absl::Status Unregister(const std::string& called, int64_t now_ms,
                          Writes& writes);
  const Manifest* FindManifest(uint64_t hash) const;

  absl::StatusOr<OpenReply> Open(const OpenRequest& request, int64_t now_ms,
                                 Writes& writes);
  ClientReply OnClient(const ClientBeat& beat, int64_t now_ms, Writes& writes);
  absl::StatusOr<ReleaseReply> Release(const ReleaseRequest& request,
                                       int64_t now_ms, Writes& writes);
  // FailedPrecondition if a worker at that address is none of the dispatcher's.
  absl::Status CheckWorker(const std::string& address) const;
  WorkerReply OnWorker(const WorkerBeat& beat, int64_t now_ms, Writes& writes);

  // What time alone brings about: workers and consumers that are gone, runs
  // that are over. To be called every 100 ms or so.
  void Tick(int64_t now_ms, Writes& writes);

  // The workers at `address` hear that they should drain. NotFound.
  absl::Status Drain(const std::string& address);
  // The job's run is closed, and its consumers hear so. NotFound.
  absl::Status Cancel(const std::string& job, Writes& writes);

  // What has happened since it was last asked.
  News TakeNews();
  // A worker with room might get a lease.
  bool has_work() const { return !index_.ready.empty(); }

  // Of workers and jobs, for people.
  void Describe(int64_t now_ms, State& state) const;

  // For windows and tests.
  struct Worker {
    std::string address;
    std::string local_socket;
    uint32_t frame_port = 0;
    int64_t heard_ms = 0;
    bool is_draining = false;
    bool should_drain = false;
    uint64_t held = 0;
    std::vector<std::string> tags;
  };
  const std::map<uint64_t, Worker>& workers() const { return workers_; }
  // Null: no such job or epoch.
  const EpochState* FindEpoch(const std::string& job, uint64_t epoch) const;

 private:
  // Who reads in a slot, or did.
  struct Session {
    Opener opener;
    int64_t heard_ms = 0;
    bool has_left = false;
    bool is_at_start = false;  // of a restore, as far as it is known
  };
  // What the shares of an epoch are run with, and what it is named by.
  struct Pass {
    uint64_t number = 0;
    uint64_t iteration = 0;
    uint64_t name() const;
  };
  struct Plan {
    std::shared_ptr<const std::string> bytes;
    bool is_kept = false;
    int64_t used_ms = 0;
  };
  struct Cut {
    Manifest manifest;
    int64_t used_ms = 0;
  };
  // A state that waits for the others of its checkpoint.
  struct Restoring {
    ConsumerState state;
    int64_t since_ms = 0;
    int64_t heard_ms = 0;  // who brings it asks again and again
  };
  struct Epoch {
    Pass pass;
    std::unique_ptr<EpochState> state;
    uint64_t manifest = 0;
    uint64_t bundles_in_pass = 0;  // as far as it is known
    // The worker that is making it, and its lease.
    uint64_t maker = 0;
    uint64_t maker_attempt = 0;
    absl::Status failure;
    bool is_recovered = false;             // it was there before this term
    std::map<uint32_t, Session> sessions;  // by slot
    // States of consumers that want to go on from a checkpoint, by their old
    // slots; and the hashes of those that this generation was made of.
    std::map<uint32_t, Restoring> restoring;
    std::set<uint64_t> restored;
    uint64_t first_row = 0;  // of its reader, which begins later than others
    uint64_t missed = 0;     // items, as its reader says
    uint64_t row = 0;        // that its reader has had
  };
  struct Run {
    RunRecord record;
    std::map<uint64_t, Epoch> epochs;
    int64_t used_ms = 0;
    std::vector<plan::Offer> offers;
    // Its group goes on with another number of members (MarkResized).
    struct Resized {
      uint64_t row = 0;
      uint32_t lanes = 0;
    };
    std::optional<Resized> resized;
  };

  DispatcherState(const Settings& settings, uint64_t term, int64_t now_ms);
  absl::Status Recover(const std::vector<store::Record>& records);
  absl::Status RecoverOne(const store::Record& record);
  absl::Status RecoverPlan(const std::string& key, const std::string& value);

  uint64_t NextNumber() { return term_ << 32 | ++counter_; }
  Run* FindRun(const std::string& job);
  Run* FindRun(uint64_t number);
  Epoch* FindEpoch(const EpochId& id);
  // Another makes its manifest; 0: nobody.
  void SetMaker(Epoch& epoch, uint64_t worker);
  // Its consumers should hear of it.
  void Tell(const Epoch& epoch);
  absl::StatusOr<Run*> OpenRun(const OpenRequest& request, int64_t now_ms,
                               Writes& writes);
  Epoch& BeginGeneration(Run& run, const Pass& pass, uint64_t generation,
                         const Progress& inherited, uint64_t manifest,
                         Writes& writes);
  // Takes states in; true once a new generation has begun of them.
  absl::StatusOr<bool> Restore(Run& run, const OpenRequest& request,
                               int64_t now_ms, Writes& writes);
  // It is of the generation in force, or one that that was made of: then its
  // consumer has had nothing since, and is where the generation began.
  static bool IsOfNow(const Epoch& epoch, const ConsumerState& state);
  static void SetToNow(const Epoch& epoch, ConsumerState& state);
  // Not all of them are here. FailedPrecondition once it has taken too long.
  absl::Status WaitForStates(Epoch& epoch, const OpenRequest& request,
                             std::map<uint32_t, Restoring> states,
                             int64_t now_ms, Writes& writes);
  // Of those who do not ask any more, and so will not go on.
  void ForgetStates(Epoch& epoch, int64_t now_ms, Writes& writes);
  absl::Status CheckSame(const Run& run, const OpenRequest& request) const;

  // --- dispatcher_groups.cc ---
  // Whether it can be a member of the group that it names, beside those that
  // are there.
  absl::Status CheckGroup(const OpenRequest& request, int64_t now_ms) const;
  // It and `other` go on with the same rounds, as far as states say.
  static absl::Status CheckSeed(const OpenRequest& request, const Run& other);
  // Who goes on from a state takes its group back to the rounds that it is of:
  // jobs of members that have been resized since.
  std::vector<std::string> BranchLeft(const OpenRequest& request) const;
  // Closes their runs.
  void LeaveBranch(const OpenRequest& request, Writes& writes);
  // Finds who has been resized, as the runs that there are say.
  void MarkResized();
  // Of one that goes on from members of another number.
  absl::Status CheckResize(const OpenRequest& request) const;
  // A run of the group that somebody reads, but that of `job`; one with as many
  // members, if there is one. Null: none.
  const Run* LiveMember(const Group& group, const std::string& job,
                        int64_t now_ms) const;
  // The last rounds of its group that have all left, if `job` has not been in
  // them (it was in those of `founder`): it comes late. Null: none.
  const Run* EndedMember(const OpenRequest& request, uint64_t founder) const;
  // It begins beside them: what it has in common with them. `founder`: of the
  // group that its job was in before, if any.
  void JoinGroup(const OpenRequest& request, uint64_t founder, int64_t now_ms,
                 Run& run);
  // Its group was resized in the middle of that pass.
  static bool IsResizedIn(const Run& run, const Pass& pass);
  // At which row of it; 0: it was not.
  static uint64_t ResizedAt(const Run& run, const Pass& pass);
  static Pass PassOf(const ConsumerState& state);
  // That of the states that it goes on from, if there are any.
  static Pass PassOf(const OpenRequest& request);
  // A member begins that has no state. FailedPrecondition: nobody says where.
  absl::Status BeginMember(Run& run, const Pass& pass, Writes& writes);
  // Who is in the place that it asks for, or in the generation that it would
  // end (OpenReply.replaces); 0: nobody but itself.
  uint64_t HolderOf(const OpenRequest& request);
  // A lane's reader came back without a state: the others go on, or it is to
  // take the place of the one before.
  bool MayRejoin(const Run& run, const OpenRequest& request,
                 int64_t now_ms) const;
  // It goes on where the others are. Unavailable: that is not known yet.
  absl::Status Rejoin(Run& run, const OpenRequest& request, int64_t now_ms,
                      Writes& writes);
  bool IsLive(const Run& run, int64_t now_ms) const;
  // What another member has found of the same pass; 0: nothing.
  uint64_t ManifestOfGroup(const Run& run, const Pass& pass) const;
  void SetTable(Epoch& epoch);
  // Bundles that it is behind the furthest member.
  uint64_t LagOf(const Epoch& epoch) const;
  void FollowOthers(Epoch& epoch, Writes& writes);
  // All whose tables have changed.
  void FollowAll(Writes& writes);
  void ForgetInTables(uint64_t worker);
  static Sharing SharingOf(const Run& run, const Epoch& epoch,
                           const EpochState::Given& given);

  // --- dispatcher_offers.cc ---
  void TakeWork(const WorkerBeat& beat, int64_t now_ms);
  void FindOffers(Run& run, int64_t now_ms);
  // What they have in common is computed once already.
  static bool IsOneGroup(const Run& run, const Run* other);
  void DescribeWork(const Run& run, State::Job& job) const;

  // Static shards are those of the workers that there are.
  absl::Status CheckWorkers(const Epoch& epoch) const;
  Lease MakeLease(const Run& run, const Epoch& epoch,
                  const EpochState::Given& given) const;
  void WriteEpoch(const Epoch& epoch, Writes& writes) const;
  void CloseRun(const std::string& job, const std::string& why, Writes& writes);
  // To people.
  void Say(const std::string& event, EventFacts facts);
  void TakeManifest(const WorkerBeat& beat, int64_t now_ms, WorkerReply& reply,
                    Writes& writes);
  void GrantTo(uint64_t id, uint32_t room, WorkerReply& reply, Writes& writes);
  std::optional<EpochState::Given> GrantOf(Epoch& epoch, uint64_t worker,
                                           Writes& writes);
  void DropUnused(int64_t now_ms, Writes& writes);
  void LoseWorker(uint64_t id, Writes& writes);
  bool IsLive(const Session& session, int64_t now_ms) const;
  void SetBundles(Epoch& epoch);
  bool IsThere(const std::string& address) const;

  const Settings settings_;
  const uint64_t term_;
  const int64_t started_ms_;
  // Until then, who held what before a restart may still say so.
  int64_t grace_ends_ms_;
  bool is_in_grace_ = true;
  uint64_t counter_ = 0;
  int64_t drop_unused_ms_;  // when to look for them next
  std::map<std::string, Plan> plans_;
  std::map<std::string, std::string> names_;  // of plans that are kept
  std::map<uint64_t, Cut> manifests_;
  EpochIndex index_;  // outlives the runs' epochs
  // Of groups: by what their members' bundles have in common. They outlive the
  // epochs, too.
  std::map<uint64_t, SharedTable> tables_;
  EpochName granted_last_;
  std::set<EpochName> in_making_;              // somebody makes their manifests
  std::map<std::string, Run> runs_;            // by job
  std::map<uint64_t, Run*> numbers_;           // the same by their numbers
  std::map<uint64_t, std::string> cancelled_;  // jobs, by numbers of runs
  std::map<uint64_t, Worker> workers_;
  WorkerPlaces places_;
  WorkTable work_;
};

// What a manifest is known by.
uint64_t HashOf(const Manifest& manifest);
// How many bundles there are; unset: without end.
std::optional<uint64_t> BundlesOf(const Manifest& manifest);

}  // namespace penstock::service
