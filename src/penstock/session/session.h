// What one trainer's process sees: calls in, answers out, iterators between.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/base/socket.h"
#include "penstock/data/buffer.h"
#include "penstock/engine/cache_store.h"
#include "penstock/engine/executor.h"
#include "penstock/engine/kept_disk.h"
#include "penstock/engine/kept_rows.h"
#include "penstock/engine/memory_budget.h"
#include "penstock/engine/pipeline.h"
#include "penstock/engine/receiver.h"
#include "penstock/io/file_system.h"
#include "penstock/io/io_pool.h"
#include "penstock/plan/snapshot_log.h"
#include "penstock/pool/python_pool.h"
#include "penstock/session.pb.h"
#include "penstock/session/frame_sender.h"
#include "penstock/session/host_limits.h"
#include "penstock/session/recording.h"
#include "penstock/session/service_channel.h"
#include "penstock/session/speeds.h"
#include "penstock/session/tunings.h"

namespace penstock::session {

// An answer, and a descriptor that goes along with it.
struct Answer {
  Response response;
  std::vector<int> fds = {};  // that go along
  Owner keeper = nullptr;     // of them
};

// Not thread-safe: the loop that reads the sockets calls it. What it starts
// runs on its executor.
class Session final {
 public:
  Session(const HostLimits& limits, Descriptor service_socket);
  ~Session();

  // Answers a call; `fds` came with it. Never fails: errors are answers.
  Answer Handle(const Request& request, std::vector<Descriptor> fds);

  // Does what is due; gives the milliseconds until something is again, or -1.
  int Tick();

  // What the process may use has changed. The number of threads stays.
  void SetLimits(const HostLimits& limits);

  ServiceChannel& service() { return service_; }
  // The iterators' sockets, to be watched; OnReadable() when one has something.
  std::vector<int> IteratorSockets() const;
  void OnReadable(int fd);

 private:
  absl::StatusOr<Answer> Call(const Request& request,
                              std::vector<Descriptor> fds);
  absl::StatusOr<Response> DoHello(const Hello& call);
  absl::StatusOr<Response> DoAppend(const Append& call);
  absl::StatusOr<Response> DoInfer(const Infer& call);
  absl::StatusOr<Response> DoEvaluate(const Evaluate& call);
  absl::StatusOr<Response> DoDescribe(const Describe& call);
  static absl::StatusOr<Response> DoChooseBoundaries(
      const ChooseBoundaries& call);
  absl::StatusOr<Response> DoAddCapture(const AddCapture& call,
                                        std::vector<Descriptor> fds);
  absl::StatusOr<Response> DoAddFunction(const AddFunction& call,
                                         std::vector<Descriptor> fds);
  absl::StatusOr<Response> DoMakeIterator(const MakeIterator& call,
                                          std::vector<Descriptor> fds);
  absl::StatusOr<Answer> DoGetSegment(const GetSegment& call);
  absl::StatusOr<Response> DoGetStats(const GetStats& call);
  absl::StatusOr<Response> DoTrace(const session::Trace& call);
  absl::StatusOr<Response> DoExplain(const Explain& call);
  absl::StatusOr<Response> DoWhatIf(const WhatIf& call);
  absl::StatusOr<Response> DoSetKnobs(const SetKnobs& call);
  absl::StatusOr<Response> DoRewrite(const Rewrite& call);
  static Response DoListPasses();
  absl::StatusOr<Response> DoRegister(const Register& call);
  static absl::StatusOr<Response> DoGetRegistered(const GetRegistered& call);
  static absl::StatusOr<Response> DoUnregister(const Unregister& call);
  static absl::StatusOr<plan::Plan> ParsePlan(const std::string& bytes);
  struct ToRun {
    plan::Plan plan;
    plan::Knobs knobs;
    // Decided here, since the plan's options ask for it.
    std::optional<plan::Rewriting> rewriting;
  };
  // The plan, or what it is rewritten to; and the knobs for it.
  absl::StatusOr<ToRun> FindPlanToRun(const MakeIterator& call);
  absl::StatusOr<FrameSender*> FindSender(uint64_t iterator);
  io::FileSystem* FilesFrom(const std::string& directory);
  // Where the plan's distributed rows come from; null: it has none.
  absl::StatusOr<std::shared_ptr<engine::Receiver>> MakeReceiver(
      const plan::Plan& plan, const MakeIterator& call);
  // Where rows are kept in `name`, which may start from `directory`.
  std::shared_ptr<engine::KeptDisk> DiskOf(const std::string& name,
                                           const std::string& directory);

  struct Reading {
    std::shared_ptr<FrameSender> sender;
    int64_t started_ns = 0;
    int64_t cpu_ns_before = 0;
    std::optional<int64_t> machine_cpu_before;
    // When its consumer had taken elements, or when knobs last changed after
    // that: what it takes to begin is no part of its rate.
    std::optional<plan::Snapshot> begun;
    int64_t begun_at_ns = 0;  // to be looked whether it has
    pool::PythonTimes python_before;
    std::unique_ptr<Recording> recording;
    plan::Knobs knobs;  // that were set, beside the user's
    // Unset: it is not tuned while it runs.
    std::shared_ptr<Tuning> tuning;
    int64_t tune_at_ns = 0;
    int64_t tuned_at_ns = 0;    // last
    int64_t tuned_cpu_ns = 0;   // of the process, then
    int64_t tuning_cpu_ns = 0;  // that all looks at it have taken
    // The node whose rows are kept until a cache is decided on: it would be the
    // better the more it has. -1: none.
    int kept_on_trial = -1;
    // What was measured of the machine for it; unset: nobody has asked.
    std::optional<plan::Snapshot::Machine> speeds;
  };

  // Whether the iterator is tuned while it runs; begins with what was found
  // when its pipeline last ran.
  void BeginTuning(Reading& reading);
  static void SetTrialCache(const Reading& reading, int64_t bytes);
  void Tune(uint64_t iterator, Reading& reading, int64_t now);
  // The same, and when next.
  void TuneInTurn(uint64_t iterator, Reading& reading, int64_t now);
  void LookWhetherBegun(uint64_t iterator, Reading& reading, int64_t now);

  absl::StatusOr<Reading*> FindReading(uint64_t iterator);
  // What others use of the machine is looked at for those who want to know why:
  // tuning judges by itself, and is to cost little.
  enum class Sees { kItself, kMachine };
  plan::Snapshot SnapshotOf(uint64_t iterator, const Reading& reading,
                            Sees sees);
  // How fast the machine is where the snapshot shows that it matters. Waits for
  // storage, up to a second or two if it is not known yet.
  plan::Snapshot::Machine SpeedsFor(const Reading& reading,
                                    const plan::Snapshot& snapshot);
  // What is whole of a file; an error if that is nothing.
  static absl::StatusOr<plan::SnapshotLog> ReadTrace(const std::string& path);
  // The snapshots of an iterator, the last of them of now.
  absl::StatusOr<std::vector<plan::Snapshot>> Recorded(uint64_t iterator);

  HostLimits limits_;
  ServiceChannel service_;
  // By the directory that relative names start from; a trainer has few.
  std::map<std::string, std::unique_ptr<io::FileSystem>> files_;
  io::IoPool io_pool_;
  const std::shared_ptr<engine::KeptRows> kept_;
  std::map<std::string, std::shared_ptr<engine::KeptDisk>> disks_;
  const std::shared_ptr<engine::MemoryBudget> memory_;
  engine::CacheStore caches_;
  engine::Instances instances_;
  pool::PythonPool python_;
  Tunings tunings_;
  Speeds speeds_;
  std::map<uint64_t, Reading> iterators_;
  uint64_t next_iterator_ = 1;
  // Last: its threads end before anything that they use does.
  engine::Executor executor_;
};

}  // namespace penstock::session
