#include "penstock/service/worker/worker_server.h"

#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/service/client/pass.h"
#include "penstock/service/worker/beater.h"
#include "penstock/service/worker/documents.h"
#include "penstock/service/worker/manifest.h"

namespace penstock::service {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
// A client may hear of an assignment before the worker does.
constexpr int64_t kLeasePatienceNanos = 500 * kMillisecond;
// How often a draining worker looks who still reads.
constexpr int64_t kDrainStepNanos = 50 * kMillisecond;
// Between two beats that say what was computed.
constexpr int64_t kWorkNanos = 500 * kMillisecond;
// To services whose jobs it reads.
constexpr absl::Duration kGoodbyes = absl::Seconds(1);
constexpr int64_t kRetryNanos = 100 * kMillisecond;
constexpr int64_t kMaxRetryNanos = 2'000 * kMillisecond;
constexpr size_t kReadThreads = 64;
constexpr size_t kErrandThreads = 16;
constexpr size_t kMaxPlans = 16;
constexpr int64_t kMinPythonBytes = int64_t{512} << 20;
constexpr int64_t kMinArenaBytes = int64_t{64} << 20;

int64_t MachineBytes() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
}

WorkerServer::Options Resolved(WorkerServer::Options options) {
  if (options.cpus <= 0) {
    options.cpus =
        std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  if (options.memory_bytes <= 0) options.memory_bytes = MachineBytes() / 2;
  if (options.max_running == 0) {
    options.max_running = static_cast<uint32_t>(options.cpus);
  }
  options.max_held = std::max(options.max_held, 2 * options.max_running);
  if (options.server_credentials == nullptr) {
    options.server_credentials = grpc::InsecureServerCredentials();
  }
  if (options.files == nullptr) options.files = &io::LocalFileSystem();
  return options;
}

// Of all memory: frames; half of them for those that are made, the rest for
// those that are being computed.
int64_t ArenaBytes(const WorkerServer::Options& options) {
  return std::max(options.memory_bytes / 4, kMinArenaBytes);
}

PythonHost::Options PythonOptions(const WorkerServer::Options& options) {
  PythonHost::Options python;
  python.rules = options.code;
  python.interpreter = options.python;
  python.version = options.version;
  python.processes = options.cpus;
  python.rows_bytes = std::max(options.memory_bytes / 8, kMinArenaBytes);
  python.process_bytes = options.python_bytes;
  if (python.process_bytes <= 0) {
    python.process_bytes =
        std::max(options.memory_bytes / options.cpus, kMinPythonBytes);
  }
  return python;
}

absl::Status HandedOver() {
  return absl::NotFoundError(
      "the worker does not hold that bundle any more: it drains");
}

absl::Status Revoked() {
  return absl::NotFoundError(
      "the worker does not hold that bundle any more: the dispatcher has "
      "taken it back");
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerServer>> WorkerServer::Start(
    Options options) {
  std::unique_ptr<WorkerServer> worker(
      new WorkerServer(Resolved(std::move(options))));
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::Channel> channel,
      rpc::MakeChannel(worker->options_.dispatcher,
                       worker->options_.credentials, rpc::Carries::kBeats));
  const std::shared_ptr<Dispatcher::Stub> stub = Dispatcher::NewStub(channel);
  const rpc::Credentials& credentials = worker->options_.credentials;
  worker->plans_ = std::make_unique<PlanStore>(
      [stub, credentials](const std::string& plan) {
        return FetchPlan(*stub, credentials, plan);
      },
      kMaxPlans, &worker->python_,
      ServiceRules(worker->options_.dispatcher, worker->options_.services,
                   credentials));
  worker->epochs_ = std::make_unique<EpochFilesStore>(
      worker->files_, [stub, credentials](uint64_t manifest) {
        return FetchManifest(*stub, credentials, manifest);
      });
  PENSTOCK_ASSIGN_OR_RETURN(worker->productions_, worker->MakeProductions());
  PENSTOCK_RETURN_IF_ERROR(worker->Listen());
  Beater::Options beats;
  beats.version = worker->options_.version;
  beats.credentials = credentials;
  beats.address = worker->options_.dispatcher;
  WorkerServer* self = worker.get();
  beats.make_beat = [self](bool says_all) { return self->MakeBeat(says_all); };
  beats.on_reply = [self](const WorkerReply& reply) { self->OnReply(reply); };
  beats.on_refused = [self](const absl::Status& why) {
    self->log_.Write("refused_by_dispatcher",
                     {{"dispatcher", self->options_.dispatcher},
                      {"code", absl::StatusCodeToString(why.code())}});
    MutexLock lock(&self->mutex_);
    self->refusal_ = why;
    self->changed_.SignalAll();
  };
  beats.on_trouble = [self](const absl::Status& why) {
    self->log_.Write("dispatcher_unreachable",
                     {{"dispatcher", self->options_.dispatcher},
                      {"code", absl::StatusCodeToString(why.code())},
                      {"why", std::string(why.message())}});
  };
  worker->beater_ = std::make_unique<Beater>(stub, std::move(beats));
  worker->beater_->Start();
  worker->watch_ = std::thread([self] { self->Watch(); });
  return worker;
}

WorkerServer::WorkerServer(Options options)
    : options_(std::move(options)),
      id_(NewWord()),
      files_(*options_.files),
      log_(options_.log == nullptr ? EventLog::Silent() : *options_.log),
      memory_(FrameMemory::Make(static_cast<size_t>(ArenaBytes(options_)))),
      shared_memory_(
          FrameMemory::Make(static_cast<size_t>(ArenaBytes(options_) / 4 * 3))),
      output_(OutputBudget::Make(ArenaBytes(options_) / 2)),
      rows_(std::make_shared<engine::MemoryBudget>(options_.memory_bytes / 2)),
      instances_(NewWord),
      python_(PythonOptions(options_)),
      io_pool_(kReadThreads),
      executor_(options_.cpus),
      errands_(kErrandThreads) {}

absl::Status WorkerServer::Listen() {
  if (options_.has_local_socket) {
    PENSTOCK_ASSIGN_OR_RETURN(local_,
                              LocalFrames::Start(memory_, shared_memory_));
  }
  const std::string host =
      options_.listen.substr(0, options_.listen.rfind(':'));
  if (options_.has_frame_socket && !absl::StartsWith(host, "unix")) {
    PENSTOCK_ASSIGN_OR_RETURN(frame_sockets_,
                              FrameSockets::Start(host, options_.frame_port));
  }
  reads_.local = local_.get();
  reads_.sockets = frame_sockets_.get();
  reads_.check_caller = options_.check_caller;
  reads_.report = [this] { return Report(); };
  reads_.find = [this](const EpochId& epoch, uint64_t bundle, uint64_t from,
                       ReadContext::Found found) {
    Find(epoch, bundle, from, std::move(found));
  };
  read_service_ = MakeReadService(reads_);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options_.listen, options_.server_credentials, &port);
  builder.RegisterService(read_service_.get());
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // Idle clients ping, so that they learn when a worker has gone.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options_.listen,
                     "\n  Is the port in use, and the address this "
                     "machine's?"));
  }
  address_ = options_.advertise;
  if (address_.empty()) address_ = host;
  if (address_.find(':') == std::string::npos ||
      absl::EndsWith(address_, "]")) {
    absl::StrAppend(&address_, ":", port);
  }
  WorkerState::Settings settings;
  settings.worker = id_;
  settings.address = address_;
  if (local_ != nullptr) settings.local_socket = local_->name();
  if (frame_sockets_ != nullptr) settings.frame_port = frame_sockets_->port();
  settings.tags = options_.tags;
  settings.max_held = options_.max_held;
  settings.max_running = options_.max_running;
  MutexLock lock(&mutex_);
  state_ = std::make_unique<WorkerState>(settings);
  return absl::OkStatus();
}

WorkerServer::~WorkerServer() {
  if (beater_ != nullptr) beater_->Stop();
  std::vector<Waiting> waiting;
  std::map<Key, Held> runs;
  {
    MutexLock lock(&mutex_);
    is_ending_ = true;
    waiting.swap(waiting_);
    runs.swap(runs_);
    changed_.SignalAll();
  }
  for (Waiting& each : waiting) each.found(nullptr);
  for (auto& [key, held] : runs) {
    held.run->Close(absl::UnavailableError("the worker ends"));
  }
  if (productions_ != nullptr) {
    productions_->Close(absl::UnavailableError("the worker ends"));
  }
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::seconds(1));
    server_->Wait();
  }
  if (watch_.joinable()) watch_.join();
  WaitForGoodbyes(kGoodbyes);
  memory_->Retire();
  shared_memory_->Retire();
}

WorkerServer::Key WorkerServer::KeyOf(const Lease& lease) {
  const EpochId& epoch = lease.epoch();
  return {epoch.run(), epoch.epoch(), epoch.generation(), lease.bundle()};
}

WorkerBeat WorkerServer::MakeBeat(bool says_all) {
  MutexLock lock(&mutex_);
  WorkerBeat beat = state_->MakeBeat();
  const int64_t now = SteadyClock().NowNanos();
  if (says_all || now - work_said_ns_ >= kWorkNanos) {
    work_said_ns_ = now;
    for (Work& work : ledger_.Report()) *beat.add_work() = std::move(work);
  }
  return beat;
}

void WorkerServer::AddRun(const Lease& lease) {
  if (lease.has_sharing()) return AddReader(lease);
  const Key key = KeyOf(lease);
  const uint64_t serial = next_serial_++;
  BundleRun::Options options;
  options.memory = memory_;
  options.instances = &instances_;
  options.on_computed = [this, key, serial] { OnComputed(key, serial); };
  options.on_stalled = [this, key, serial](bool is_stalled) {
    OnStalled(key, serial, is_stalled);
  };
  auto run = std::make_shared<BundleRun>(&executor_, std::move(options));
  run->Charge(*output_);
  runs_[key] = Held{lease, run, run, serial};
}

void WorkerServer::OnReply(const WorkerReply& reply) {
  Deeds deeds;
  bool is_joining;
  bool is_asked_to_go;
  {
    MutexLock lock(&mutex_);
    if (is_ending_) return;
    is_joining = state_->term() < reply.term();
    is_asked_to_go = reply.should_drain() && !is_draining_;
    heard_ns_ = SteadyClock().NowNanos();
    const WorkerState::Changes changes = state_->OnReply(reply);
    for (const Lease& lease : changes.removed) {
      const auto it = runs_.find(KeyOf(lease));
      if (it == runs_.end()) continue;
      deeds.close.emplace_back(std::move(it->second.run), Revoked());
      runs_.erase(it);
    }
    // What others follow is there before them.
    std::vector<Lease> added = changes.added;
    std::stable_partition(added.begin(), added.end(), [](const Lease& lease) {
      return !lease.sharing().is_following();
    });
    for (const Lease& lease : added) {
      // One that came while it drains has gone back already.
      if (lease.is_for_manifest() ||
          state_->Find(lease.epoch(), lease.bundle()) == nullptr) {
        continue;
      }
      AddRun(lease);
    }
    for (size_t i = 0; i < waiting_.size();) {
      const auto it = runs_.find(waiting_[i].key);
      if (it == runs_.end()) {
        ++i;
        continue;
      }
      state_->Hurry(it->second.lease.epoch(), it->second.lease.bundle(),
                    waiting_[i].from);
      deeds.found.emplace_back(std::move(waiting_[i].found), it->second.run);
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    StartNext();
    // What came and goes back at once, the dispatcher should hear soon.
    deeds.is_news = is_draining_ && !changes.added.empty();
    changed_.SignalAll();
  }
  if (is_joining) {
    log_.Write("joined", {{"dispatcher", options_.dispatcher},
                          {"term", absl::StrCat(reply.term())}});
  }
  Do(std::move(deeds));
  if (is_asked_to_go) Drain();
}

void WorkerServer::Do(Deeds deeds) {
  for (auto& [run, why] : deeds.close) run->Close(why);
  for (auto& [found, run] : deeds.found) found(std::move(run));
  if (deeds.is_news) beater_->Poke();
}

void WorkerServer::Find(const EpochId& epoch, uint64_t bundle, uint64_t from,
                        ReadContext::Found found) {
  std::shared_ptr<FrameSource> run;
  {
    MutexLock lock(&mutex_);
    const Key key(epoch.run(), epoch.epoch(), epoch.generation(), bundle);
    const auto it = runs_.find(key);
    if (it != runs_.end()) {
      run = it->second.run;
      state_->Hurry(epoch, bundle, from);
      StartNext();
    } else if (!is_draining_ && !is_ending_) {
      waiting_.push_back({key, from, std::move(found),
                          SteadyClock().NowNanos() + kLeasePatienceNanos});
      changed_.SignalAll();
      return;
    }
  }
  found(std::move(run));
}

void WorkerServer::StartNext() {
  if (is_ending_) return;
  while (const std::optional<Lease> lease = state_->Start()) {
    if (lease->is_for_manifest()) {
      errands_.Submit([this, lease = *lease] { Survey(lease); });
      continue;
    }
    const auto it = runs_.find(KeyOf(*lease));
    if (it == runs_.end()) continue;
    if (lease->has_sharing()) {
      const uint64_t production = lease->sharing().production();
      for (Held* held : ReadersOf(production)) held->is_started = true;
      preparing_.insert(production);
      errands_.Submit([this, lease = *lease] { PrepareProduction(lease); });
      continue;
    }
    it->second.is_started = true;
    errands_.Submit(
        [this, lease = *lease, run = it->second.own] { Prepare(lease, run); });
  }
}

void WorkerServer::OnComputed(const Key& key, uint64_t serial) {
  {
    MutexLock lock(&mutex_);
    const auto it = runs_.find(key);
    if (it == runs_.end() || it->second.serial != serial) return;
    if (std::exchange(it->second.is_computed, true)) return;
    ++computed_;
    state_->OnComputed(it->second.lease);
    StartNext();
  }
  beater_->Poke();  // there is room for another
}

void WorkerServer::OnStalled(const Key& key, uint64_t serial, bool is_stalled) {
  MutexLock lock(&mutex_);
  const auto it = runs_.find(key);
  if (it == runs_.end() || it->second.serial != serial) return;
  state_->OnStalled(it->second.lease, is_stalled);
  if (is_stalled) StartNext();
}

engine::Environment WorkerServer::MakeEnvironment(const ReadyPlan& plan) const {
  engine::Environment environment;
  auto* self = const_cast<WorkerServer*>(this);
  environment.executor = &self->executor_;
  environment.files = &files_;
  environment.directory = plan.directory;
  environment.io_pool = &self->io_pool_;
  environment.memory = rows_;
  if (plan.pipeline->options().has_memory_budget_bytes()) {
    environment.memory = std::make_shared<engine::MemoryBudget>(
        plan.pipeline->options().memory_budget_bytes());
  }
  environment.caches = &self->caches_;
  environment.sources = plan.captures.get();
  environment.functions = plan.functions.get();
  environment.frames = memory_;
  environment.padding = padding_;
  return environment;
}

absl::StatusOr<PlanPtr> WorkerServer::FindPlan(const Lease& lease) {
  absl::StatusOr<PlanPtr> plan = plans_->Get(lease.plan());
  if (absl::IsPermissionDenied(plan.status()) ||
      absl::IsFailedPrecondition(plan.status())) {
    return absl::Status(plan.status().code(),
                        absl::StrCat("at the worker ", address_, ": ",
                                     plan.status().message()));
  }
  return plan;
}

absl::StatusOr<BundleRun::Setup> WorkerServer::MakeSetup(const Lease& lease) {
  BundleRun::Setup setup;
  PENSTOCK_ASSIGN_OR_RETURN(setup.plan, FindPlan(lease));
  PENSTOCK_ASSIGN_OR_RETURN(
      const EpochFilesPtr files,
      epochs_->Get(setup.plan->directory, lease.manifest()));
  PENSTOCK_ASSIGN_OR_RETURN(setup.part,
                            PartOfBundle(setup.plan->division, files->manifest,
                                         lease.bundle(), lease.iteration()));
  setup.epoch = lease.epoch_number();
  setup.seed = lease.seed();
  setup.environment = MakeEnvironment(*setup.plan);
  if (lease.has_sharing()) setup.environment.frames = shared_memory_;
  setup.environment.files = files->files;
  setup.keep = files;
  setup.account = AccountOf(lease, files->manifest, setup.part);
  setup.environment.padding = setup.account->padding();
  PENSTOCK_RETURN_IF_ERROR(SetKept(*files, setup));
  if (setup.plan->received != nullptr) {
    setup.environment.receiver =
        MakeReceiver(lease, files->manifest, setup.plan->received);
  }
  const auto& by_worker = setup.plan->division.by_worker;
  if (!by_worker && !setup.plan->division.is_whole) return setup;
  // Where each worker runs all of it, each has an order of its own.
  if (by_worker && !by_worker->files && !by_worker->rows) {
    setup.seed = Combine(lease.seed(), lease.bundle());
  }
  // Nodes of other plans have the same names.
  struct Kept {
    EpochFilesPtr files;
    engine::CacheStore caches;
  };
  auto kept = std::make_shared<Kept>();
  kept->files = files;
  setup.environment.caches = &kept->caches;
  setup.keep = std::move(kept);
  return setup;
}

bool WorkerServer::WaitToRetry(const absl::Status& status, int tries) {
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) {
    return false;
  }
  const int64_t until =
      SteadyClock().NowNanos() +
      std::min(kMaxRetryNanos, kRetryNanos << std::min(tries, 10));
  MutexLock lock(&mutex_);
  while (!is_ending_) {
    const int64_t left = until - SteadyClock().NowNanos();
    if (left <= 0) return true;
    changed_.WaitFor(&mutex_, left);
  }
  return false;
}

void WorkerServer::Prepare(const Lease& lease,
                           const std::shared_ptr<BundleRun>& run) {
  for (int tries = 0; !run->is_closed(); ++tries) {
    absl::StatusOr<BundleRun::Setup> setup = MakeSetup(lease);
    if (WaitToRetry(setup.status(), tries)) continue;
    return run->Begin(std::move(setup));
  }
}

void WorkerServer::Survey(const Lease& lease) {
  absl::StatusOr<Manifest> manifest;
  for (int tries = 0;; ++tries) {
    absl::StatusOr<PlanPtr> plan = FindPlan(lease);
    if (WaitToRetry(plan.status(), tries)) continue;
    if (plan.ok()) {
      const auto survey = [&](const plan::Distribution& inner) {
        return SurveyInner(lease, **plan, inner);
      };
      manifest = MakeManifest(**plan, files_, MakeEnvironment(**plan),
                              instances_, lease.workers(), survey);
    } else {
      manifest = plan.status();
    }
    break;
  }
  {
    MutexLock lock(&mutex_);
    if (is_ending_) return;
    state_->OnManifest(lease, manifest);
    StartNext();
  }
  // What went wrong is said to the job's readers: it may quote their data.
  log_.Write(manifest.ok() ? "surveyed" : "survey_failed",
             {{"run", absl::StrCat(lease.epoch().run())},
              {"epoch", absl::StrCat(lease.epoch_number())},
              {"code", absl::StatusCodeToString(manifest.status().code())}});
  beater_->Poke();
}

void WorkerServer::Drain() {
  Deeds deeds;
  {
    MutexLock lock(&mutex_);
    if (is_draining_) return;
    is_draining_ = true;
    const int64_t now = SteadyClock().NowNanos();
    drain_until_ns_ = now + absl::ToInt64Nanoseconds(options_.drain_patience);
    state_->Drain();
    HandOver(now, deeds);
    for (Waiting& each : waiting_) {
      deeds.found.emplace_back(std::move(each.found), nullptr);
    }
    waiting_.clear();
    deeds.is_news = true;
    changed_.SignalAll();
  }
  log_.Write("drain", {{"given_back", absl::StrCat(deeds.close.size())}});
  Do(std::move(deeds));
}

void WorkerServer::HandOver(int64_t now_ns, Deeds& deeds) {
  const bool is_late = now_ns >= drain_until_ns_;
  for (auto it = runs_.begin(); it != runs_.end();) {
    Held& held = it->second;
    bool may_stay = held.is_started && !is_late;
    if (may_stay && !held.run->is_read()) {
      // What a client has had to its end, it will say that it has; given back
      // before, it would be computed elsewhere for nobody.
      if (held.taken_ns == 0) held.taken_ns = now_ns;
      may_stay = held.run->is_taken() &&
                 now_ns - held.taken_ns <
                     absl::ToInt64Nanoseconds(options_.taken_patience);
    }
    if (may_stay) {
      ++it;
      continue;
    }
    state_->GiveBack(held.lease);
    deeds.close.emplace_back(held.run, HandedOver());
    deeds.is_news = true;
    it = runs_.erase(it);
  }
}

void WorkerServer::Watch() {
  while (true) {
    Deeds deeds;
    {
      MutexLock lock(&mutex_);
      if (is_ending_) return;
      const int64_t now = SteadyClock().NowNanos();
      int64_t next = now + 60'000 * kMillisecond;
      for (size_t i = 0; i < waiting_.size();) {
        if (waiting_[i].until_ns > now) {
          next = std::min(next, waiting_[i++].until_ns);
          continue;
        }
        deeds.found.emplace_back(std::move(waiting_[i].found), nullptr);
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (const std::optional<int64_t> due = productions_->LookWhoIsLate()) {
        next = std::min(next, *due);
      }
      if (is_draining_ && !runs_.empty()) {
        HandOver(now, deeds);
        next = std::min(next, now + kDrainStepNanos);
      }
      if (deeds.found.empty() && deeds.close.empty()) {
        changed_.WaitFor(&mutex_, next - now);
        continue;
      }
    }
    Do(std::move(deeds));
  }
}

bool WorkerServer::WaitUntilDrained(absl::Duration timeout) {
  const int64_t until =
      SteadyClock().NowNanos() + absl::ToInt64Nanoseconds(timeout);
  MutexLock lock(&mutex_);
  while (!state_->is_drained()) {
    if (heard_ns_ == 0 && runs_.empty()) return true;
    const int64_t left = until - SteadyClock().NowNanos();
    if (left <= 0) return false;
    changed_.WaitFor(&mutex_, std::min(left, 1'000 * kMillisecond));
  }
  return true;
}

}  // namespace penstock::service
