// What a dispatcher costs as a whole: a server, and in another process workers
// and consumers that beat over real connections as worker/beater.h and
// client/pass.h do. Prints the processor time of the server's process, and how
// many beats and replies there were.
//
//   tools/build release dispatcher_grpc_bench
//   build/release/src/penstock/service/dispatcher/dispatcher_grpc_bench
//     [workers] [jobs] [milliseconds that a bundle takes]
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "penstock/base/mutex.h"
#include "penstock/dispatcher.grpc.pb.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/service/dispatcher/dispatcher_grpc.h"
#include "penstock/service/rpc/beat_stream.h"
#include "penstock/service/rpc/channel.h"

namespace penstock::service {
namespace {

constexpr uint32_t kSlots = 4;
constexpr uint32_t kHeld = 4;
constexpr int kSettleSeconds = 8;
constexpr int kSeconds = 15;

using Clock = std::chrono::steady_clock;
using Stub = Dispatcher::Stub;

// News wait so long for others.
constexpr std::chrono::milliseconds kReaderGap(5);
constexpr std::chrono::milliseconds kWorkerGap(1);
constexpr std::chrono::milliseconds kIdle(5'000 / 3);  // a third of a lease

// What goes over the wire, in the memory of both processes.
struct Counts {
  std::atomic<uint64_t> worker_beats{0};
  std::atomic<uint64_t> worker_replies{0};
  std::atomic<uint64_t> reader_beats{0};
  std::atomic<uint64_t> reader_replies{0};
};

class Consumer;
struct World {
  Counts& counts;
  std::chrono::milliseconds bundle_time;
  Mutex mutex;
  // What is to be done, and when.
  std::multimap<Clock::time_point, std::function<void()>> agenda
      ABSL_GUARDED_BY(mutex);
  std::map<std::pair<uint64_t, uint32_t>, Consumer*> consumers;

  void At(Clock::time_point when, std::function<void()> what) {
    MutexLock lock(&mutex);
    agenda.emplace(when, std::move(what));
  }
};

// Beats when there is news, and when the last was answered.
template <typename Beat, typename Reply>
class Sender {
 public:
  using Stream = rpc::BeatStream<Beat, Reply>;
  Sender(World& world, std::chrono::milliseconds gap,
         std::atomic<uint64_t>& beats)
      : world_(world), gap_(gap), beats_(beats) {}
  virtual ~Sender() = default;

  void Begin(
      std::function<void(grpc::ClientContext*, typename Stream::Reactor*)>
          call) {
    typename Stream::Options options;
    options.call = std::move(call);
    options.on_reply = [this](const Reply& reply) {
      Take(reply);
      Send();
    };
    options.on_end = [](const absl::Status& status) {
      std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    };
    Beat first = Make();
    ++beats_;
    MutexLock lock(&send_mutex_);
    stream_ = Stream::Start(std::move(options), std::move(first));
    sent_ = Clock::now();
    if (std::is_same_v<Beat, WorkerBeat>) {
      world_.At(sent_ + kIdle, [this] { SendAgain(); });
    }
  }

 protected:
  virtual Beat Make() = 0;
  virtual void Take(const Reply& reply) = 0;
  void SendSoon() {
    MutexLock lock(&send_mutex_);
    if (std::exchange(is_due_, true)) return;
    world_.At(sent_ + gap_, [this] {
      {
        MutexLock at(&send_mutex_);
        if (!is_due_) return;
      }
      Send();
    });
  }
  World& world_;

 private:
  // A worker that has nothing to say shows that it is there.
  void SendAgain() {
    bool is_late;
    Clock::time_point next;
    {
      MutexLock lock(&send_mutex_);
      is_late = Clock::now() >= sent_ + kIdle;
      next = (is_late ? Clock::now() : sent_) + kIdle;
    }
    if (is_late) Send();
    world_.At(next, [this] { SendAgain(); });
  }
  void Send() {
    MutexLock lock(&send_mutex_);
    if (stream_ == nullptr) return;
    is_due_ = false;
    sent_ = Clock::now();
    ++beats_;
    stream_->Send(Make());
  }

  const std::chrono::milliseconds gap_;
  std::atomic<uint64_t>& beats_;
  Mutex send_mutex_;
  bool is_due_ ABSL_GUARDED_BY(send_mutex_) = false;
  Clock::time_point sent_ ABSL_GUARDED_BY(send_mutex_);
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(send_mutex_);
};

class Consumer final : public Sender<ClientBeat, ClientReply> {
 public:
  Consumer(World& world, const OpenReply& opened, const OpenRequest& request)
      : Sender(world, kReaderGap, world.counts.reader_beats) {
    *beat_.mutable_epoch() = opened.epoch();
    *beat_.mutable_opener() = request.opener();
    beat_.set_slot(request.slot());
    beat_.set_want(2 * kHeld * 4);
  }
  // A bundle has come.
  void Finish(uint64_t bundle) {
    {
      MutexLock lock(&mutex_);
      finished_.insert(bundle);
    }
    SendSoon();
  }

 private:
  ClientBeat Make() override {
    MutexLock lock(&mutex_);
    ClientBeat beat = beat_;
    for (const uint64_t bundle : finished_) {
      beat.add_finished()->set_bundle(bundle);
    }
    return beat;
  }
  void Take(const ClientReply& reply) override {
    ++world_.counts.reader_replies;
    MutexLock lock(&mutex_);
    beat_.set_term(reply.term());
    for (const uint64_t each : reply.taken()) finished_.erase(each);
  }

  Mutex mutex_;
  ClientBeat beat_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> finished_ ABSL_GUARDED_BY(mutex_);
};

class Caller final : public Sender<WorkerBeat, WorkerReply> {
 public:
  Caller(World& world, uint64_t id)
      : Sender(world, kWorkerGap, world.counts.worker_beats), id_(id) {}

 private:
  WorkerBeat Make() override {
    MutexLock lock(&mutex_);
    WorkerBeat beat;
    beat.set_worker(id_);
    beat.set_address(absl::StrCat("worker:", id_));
    beat.set_term(term_);
    beat.set_room(waiting_ < kHeld ? kHeld - waiting_ : 0);
    for (const auto& [key, held] : held_) *beat.add_held() = held;
    for (const auto& each : made_) *beat.add_made() = each;
    return beat;
  }
  void Take(const WorkerReply& reply) override {
    ++world_.counts.worker_replies;
    std::vector<Lease> leases;
    {
      MutexLock lock(&mutex_);
      term_ = reply.term();
      if (reply.made_taken_size() > 0) made_.clear();
      for (const auto& each : reply.revoked()) {
        held_.erase({each.epoch().run(), each.bundle()});
      }
      for (const Lease& lease : reply.leases()) {
        if (lease.is_for_manifest()) {
          WorkerBeat::Made& made = made_.emplace_back();
          *made.mutable_epoch() = lease.epoch();
          made.set_attempt(lease.attempt());
          made.mutable_manifest()->set_rows(10'000'000);
          made.mutable_manifest()->set_rows_per_bundle(1);
          made.mutable_manifest()->set_passes(1);
          continue;
        }
        auto& held = held_[{lease.epoch().run(), lease.bundle()}];
        *held.mutable_epoch() = lease.epoch();
        held.set_bundle(lease.bundle());
        held.set_attempt(lease.attempt());
        ++waiting_;
        leases.push_back(lease);
      }
    }
    for (const Lease& lease : leases) {
      free_ = std::max(free_, Clock::now()) + world_.bundle_time;
      world_.At(free_, [this, lease] { OnComputed(lease); });
    }
  }
  void OnComputed(const Lease& lease) {
    world_.consumers.at({lease.epoch().run(), lease.slot()})
        ->Finish(lease.bundle());
    {
      MutexLock lock(&mutex_);
      --waiting_;
    }
    SendSoon();
  }

  const uint64_t id_;
  Clock::time_point free_;
  Mutex mutex_;
  uint64_t term_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<uint64_t, uint64_t>, WorkerBeat::Held> held_
      ABSL_GUARDED_BY(mutex_);
  std::vector<WorkerBeat::Made> made_ ABSL_GUARDED_BY(mutex_);
};

std::string AddPlan(Stub& stub) {
  PlanBundle bundle;
  bundle.set_plan(plan_testing::Range(10).SerializeAsString());
  grpc::ClientContext context;
  AddPlanReply id;
  auto writer = stub.AddPlan(&context, &id);
  Part part;
  part.set_bytes(bundle.SerializeAsString());
  writer->Write(part);
  writer->WritesDone();
  writer->Finish();
  return id.plan();
}

// Never returns: the server's process ends it.
void RunCallers(const std::string& address, int workers, int jobs,
                int bundle_ms, Counts& counts) {
  World world{counts, std::chrono::milliseconds(bundle_ms), {}, {}, {}};
  const auto connect = [&] {
    return Dispatcher::NewStub(
        *rpc::MakeChannel(address, {}, rpc::Carries::kBeats));
  };
  std::vector<std::unique_ptr<Stub>> stubs;
  std::vector<std::unique_ptr<Consumer>> consumers;
  std::vector<std::unique_ptr<Caller>> callers;
  stubs.push_back(connect());
  const std::string plan = AddPlan(*stubs[0]);
  for (int job = 0; job < jobs; ++job) {
    stubs.push_back(connect());
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      OpenRequest request;
      request.mutable_opener()->set_consumer(slot + 1);
      request.set_job(absl::StrCat("job", job));
      request.set_plan(plan);
      request.set_visitation(EXACTLY_ONCE);
      request.set_slot(slot);
      request.set_slots(kSlots);
      grpc::ClientContext context;
      OpenReply opened;
      const grpc::Status status =
          stubs.back()->Open(&context, request, &opened);
      if (!status.ok()) {
        std::fprintf(stderr, "%s\n", status.error_message().c_str());
        std::_Exit(1);
      }
      consumers.push_back(std::make_unique<Consumer>(world, opened, request));
      world.consumers[{opened.epoch().run(), slot}] = consumers.back().get();
    }
  }
  for (size_t i = 0; i < consumers.size(); ++i) {
    consumers[i]->Begin(
        [&stub = *stubs[1 + i / kSlots]](auto* context, auto* reactor) {
          stub.async()->BeatClient(context, reactor);
        });
  }
  for (int i = 0; i < workers; ++i) {
    stubs.push_back(connect());
    callers.push_back(
        std::make_unique<Caller>(world, static_cast<uint64_t>(i) + 1));
    callers.back()->Begin(
        [&stub = *stubs.back()](auto* context, auto* reactor) {
          stub.async()->BeatWorker(context, reactor);
        });
  }
  while (true) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::vector<std::function<void()>> done;
    {
      MutexLock lock(&world.mutex);
      const auto end = world.agenda.upper_bound(Clock::now());
      for (auto it = world.agenda.begin(); it != end; ++it) {
        done.push_back(it->second);
      }
      world.agenda.erase(world.agenda.begin(), end);
    }
    for (const auto& each : done) each();
  }
}

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

uint64_t DoneIn(const State& state) {
  uint64_t done = 0;
  for (const auto& job : state.jobs()) {
    for (const auto& epoch : job.epochs()) done += epoch.done();
  }
  return done;
}

int Run(int workers, int jobs, int bundle_ms) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  void* shared = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto* counts = new (shared) Counts();
  const pid_t callers = fork();  // before gRPC has threads
  if (callers == 0) {
    char address[64] = "";
    if (read(ends[0], address, sizeof(address) - 1) <= 0) std::_Exit(1);
    RunCallers(address, workers, jobs, bundle_ms, *counts);
  }
  DispatcherServer::Options options;
  options.listen = "127.0.0.1:0";
  options.settings.lease_ms = 3 * kIdle.count();
  auto server = DispatcherServer::Start(options);
  if (!server.ok()) return 1;
  const std::string address = (*server)->address();
  if (write(ends[1], address.data(), address.size()) < 0) return 1;
  std::this_thread::sleep_for(std::chrono::seconds(kSettleSeconds));
  const auto look = [&] {
    return std::vector<double>{
        CpuSeconds(),
        static_cast<double>(DoneIn((*server)->Describe())),
        static_cast<double>(counts->worker_beats),
        static_cast<double>(counts->worker_replies),
        static_cast<double>(counts->reader_beats),
        static_cast<double>(counts->reader_replies),
    };
  };
  const std::vector<double> before = look();
  std::this_thread::sleep_for(std::chrono::seconds(kSeconds));
  std::vector<double> in_a_second = look();
  for (size_t i = 0; i < before.size(); ++i) {
    in_a_second[i] = (in_a_second[i] - before[i]) / kSeconds;
  }
  const State state = (*server)->Describe();
  std::printf(
      "%d workers, %d jobs: %.1f %% of a processor, %.0f bundles per second, "
      "%zu calls wait\n"
      "per second: workers %.0f beats, %.0f replies; readers %.0f beats, %.0f "
      "replies\n",
      state.workers_size(), state.jobs_size(), 100 * in_a_second[0],
      in_a_second[1], (*server)->num_parked(), in_a_second[2], in_a_second[3],
      in_a_second[4], in_a_second[5]);
  kill(callers, SIGKILL);
  waitpid(callers, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace penstock::service

int main(int argc, char** argv) {
  // As main/main.cc has it.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const auto number = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  return penstock::service::Run(number(1, 1'000), number(2, 100),
                                number(3, 1'000));
}
