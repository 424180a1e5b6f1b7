// A worker: takes leases from a dispatcher, computes their bundles, and has
// them read.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_context.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/base/event_log.h"
#include "penstock/base/mutex.h"
#include "penstock/engine/cache_store.h"
#include "penstock/engine/executor.h"
#include "penstock/engine/memory_budget.h"
#include "penstock/engine/pipeline.h"
#include "penstock/io/file_system.h"
#include "penstock/io/io_pool.h"
#include "penstock/service/rpc/channel.h"
#include "penstock/service/worker/bundle_run.h"
#include "penstock/service/worker/epoch_files.h"
#include "penstock/service/worker/frame_sockets.h"
#include "penstock/service/worker/local_frames.h"
#include "penstock/service/worker/output_budget.h"
#include "penstock/service/worker/plan_store.h"
#include "penstock/service/worker/productions.h"
#include "penstock/service/worker/python_host.h"
#include "penstock/service/worker/read_call.h"
#include "penstock/service/worker/work_ledger.h"
#include "penstock/service/worker/worker_state.h"
#include "penstock/worker.pb.h"

namespace penstock::service {

class Beater;

// Thread-safe. Without its dispatcher it goes on with what it holds, and keeps
// trying.
class WorkerServer final {
 public:
  struct Options {
    std::string dispatcher;  // host:port
    rpc::Credentials credentials;
    std::string listen = "127.0.0.1:0";
    // What others reach it by, with or without a port; empty: `listen`, with
    // the port that it got.
    std::string advertise;
    std::shared_ptr<grpc::ServerCredentials> server_credentials;  // null: none
    // Whether a caller may make a call; unset: everyone may.
    std::function<absl::Status(const grpc::CallbackServerContext&,
                               std::string_view method)>
        check_caller;
    std::vector<std::string> tags;     // of the machine, for people
    std::vector<std::string> allowed;  // what `files` allows, for people
    // Whether `files` says where snapshots may be written; if not, where the
    // user of this process has made one (kept_folder.h).
    bool has_written_folders = false;
    CodeRules code;  // whose Python it runs
    // Addresses of services that plans may have it read, besides `dispatcher`.
    std::vector<std::string> services;
    std::string python;        // the interpreter for that
    int64_t python_bytes = 0;  // of a process; 0: its share of memory_bytes
    EventLog* log = nullptr;   // null: nothing is said
    int cpus = 0;              // 0: all that there are
    int64_t memory_bytes = 0;  // 0: half of the machine's
    uint32_t max_running = 0;  // bundles at once; 0: cpus
    uint32_t max_held = 16;
    std::string version;  // of the product, for people
    // Readers of a worker that drains may go on for so long.
    absl::Duration drain_patience = absl::Seconds(20);
    // And so long with a bundle that its reader has had as a whole, for the
    // dispatcher to hear of it.
    absl::Duration taken_patience = absl::Seconds(1);
    // A reader of what several read is waited for so long, by those who are
    // ahead of it.
    absl::Duration sharing_patience = absl::Seconds(30);
    // Of frames on disk that such a reader has not had.
    int64_t spill_bytes = 0;
    io::FileSystem* files = nullptr;  // null: those of this machine
    bool has_local_socket = true;
    // Frames may go over connections of their own, which are not encrypted.
    bool has_frame_socket = false;
    uint16_t frame_port = 0;  // of it; 0: one that is free
  };
  struct Counters {
    uint64_t held = 0;
    uint64_t running = 0;
    uint64_t computed = 0;  // since it started
    uint64_t sent_frames = 0;
    uint64_t sent_bytes = 0;
    int64_t output_bytes = 0;  // of frames that somebody still holds
  };

  // Listens, and looks for the dispatcher from then on.
  static absl::StatusOr<std::unique_ptr<WorkerServer>> Start(Options options);
  ~WorkerServer();
  WorkerServer(const WorkerServer&) = delete;
  WorkerServer& operator=(const WorkerServer&) = delete;

  const std::string& address() const { return address_; }
  // Of local_frames.h; empty: none.
  std::string local_socket() const {
    return local_ == nullptr ? "" : local_->name();
  }

  // For people.
  WorkerReport Report() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes no more leases. What nobody reads goes back at once; a reading goes
  // on to its end, or is ended after a whole frame when patience is over. What
  // a client has had is not sent again: it goes on elsewhere from there.
  void Drain() ABSL_LOCKS_EXCLUDED(mutex_);
  // The dispatcher has said that it should, or Drain() was called.
  bool is_draining() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether nothing is held any more, and the dispatcher knows, or has never
  // answered.
  bool WaitUntilDrained(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes what it has on disk, for a process that ends at once.
  void LeaveNothing() { python_.LeaveNothing(); }
  // Why the dispatcher will never talk to it; OK as long as it may.
  absl::Status refusal() const ABSL_LOCKS_EXCLUDED(mutex_);

  Counters counters() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>;
  struct Held {
    Lease lease;
    std::shared_ptr<FrameSource> run;
    std::shared_ptr<BundleRun> own;  // the same; null: what several read
    uint64_t serial = 0;             // of the run
    bool is_started = false;
    bool is_computed = false;
    int64_t taken_ns = 0;  // when it drains: since when it was seen to be
  };
  // Somebody wants to read a bundle whose lease may be on its way.
  struct Waiting {
    Key key;
    uint64_t from = 0;
    ReadContext::Found found;
    int64_t until_ns = 0;
  };
  // What is to be done once the lock is free.
  struct Deeds {
    std::vector<std::pair<std::shared_ptr<FrameSource>, absl::Status>> close;
    std::vector<std::pair<ReadContext::Found, std::shared_ptr<FrameSource>>>
        found;
    bool is_news = false;  // for the dispatcher
  };

  explicit WorkerServer(Options options);
  absl::Status Listen();
  absl::StatusOr<std::shared_ptr<Productions>> MakeProductions();
  static Key KeyOf(const Lease& lease);
  // One that nobody else draws; never 0.
  static uint64_t NewWord();

  WorkerBeat MakeBeat(bool says_all) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnReply(const WorkerReply& reply) ABSL_LOCKS_EXCLUDED(mutex_);
  void Find(const EpochId& epoch, uint64_t bundle, uint64_t from,
            ReadContext::Found found) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnComputed(const Key& key, uint64_t serial) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnStalled(const Key& key, uint64_t serial, bool is_stalled)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void OnProductionComputed(uint64_t production) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnProductionStalled(uint64_t production, bool is_stalled)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void AddRun(const Lease& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddReader(const Lease& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those of a production.
  std::vector<Held*> ReadersOf(uint64_t production)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // While it drains: gives back what nobody reads, and in the end everything.
  void HandOver(int64_t now_ns, Deeds& deeds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(Deeds deeds) ABSL_LOCKS_EXCLUDED(mutex_);
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);  // a thread: what is due

  // Errands: they wait for the dispatcher or for storage.
  void Prepare(const Lease& lease, const std::shared_ptr<BundleRun>& run)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void PrepareProduction(const Lease& lease) ABSL_LOCKS_EXCLUDED(mutex_);
  void Survey(const Lease& lease) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<PlanPtr> FindPlan(const Lease& lease);
  absl::StatusOr<BundleRun::Setup> MakeSetup(const Lease& lease);
  std::shared_ptr<engine::Receiver> MakeReceiver(
      const Lease& lease, const Manifest& manifest,
      const std::shared_ptr<ReceivedSources>& sources) const;
  absl::StatusOr<Manifest::Received> SurveyInner(
      const Lease& lease, const ReadyPlan& plan,
      const plan::Distribution& inner) ABSL_LOCKS_EXCLUDED(mutex_);
  engine::Environment MakeEnvironment(const ReadyPlan& plan) const;
  // Has a share that is kept found by what it is made of.
  absl::Status SetKept(const EpochFiles& files, RunSetup& setup) const;
  std::shared_ptr<WorkLedger::Account> AccountOf(const Lease& lease,
                                                 const Manifest& manifest,
                                                 const engine::RunPart& part);
  // Whether it is worth trying again, after a while.
  bool WaitToRetry(const absl::Status& status, int tries)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const uint64_t id_;
  io::FileSystem& files_;
  EventLog& log_;
  std::string address_;
  const std::shared_ptr<FrameMemory> memory_;
  const std::shared_ptr<FrameMemory> shared_memory_;  // of what several read
  const std::shared_ptr<OutputBudget> output_;
  const std::shared_ptr<engine::MemoryBudget> rows_;
  engine::CacheStore caches_;
  const std::shared_ptr<engine::PaddingStats> padding_ =
      std::make_shared<engine::PaddingStats>();
  WorkLedger ledger_{padding_};
  engine::Instances instances_;
  PythonHost python_;
  std::shared_ptr<Productions> productions_;
  std::unique_ptr<PlanStore> plans_;
  std::unique_ptr<EpochFilesStore> epochs_;
  std::unique_ptr<LocalFrames> local_;
  std::unique_ptr<FrameSockets> frame_sockets_;
  ReadContext reads_;
  std::unique_ptr<Beater> beater_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::unique_ptr<WorkerState> state_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, Held> runs_ ABSL_GUARDED_BY(mutex_);
  // Productions whose Begin() is on its way.
  std::set<uint64_t> preparing_ ABSL_GUARDED_BY(mutex_);
  std::vector<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_serial_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t computed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t drain_until_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t heard_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // of the dispatcher; 0: never
  int64_t work_said_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);

  // Each ends before what is above it.
  io::IoPool io_pool_;
  engine::Executor executor_;
  io::IoPool errands_;
  std::thread watch_;
  std::unique_ptr<grpc::Service> read_service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace penstock::service
