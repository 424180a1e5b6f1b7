// What a dispatcher costs as a whole: a server, and in another process workers
// and consumers that call it over real connections. Prints the processor time
// of the server's process per second.
//
//   tools/build release dispatcher_grpc_bench
//   build/release/src/penstock/service/dispatcher/dispatcher_grpc_bench
//     [workers] [jobs] [milliseconds that a bundle takes]
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/mutex.h"
#include "penstock/dispatcher.grpc.pb.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/service/dispatcher/dispatcher_grpc.h"
#include "penstock/service/rpc/channel.h"

namespace penstock::service {
namespace {

constexpr uint32_t kSlots = 4;
constexpr uint32_t kHeld = 4;
constexpr int kSettleSeconds = 8;
constexpr int kSeconds = 15;

using Clock = std::chrono::steady_clock;
using Stub = Dispatcher::Stub;

// Calls without end: each answer is followed by the next call.
class Consumer;
struct World {
  Mutex mutex;
  // Bundles that are being computed, by when they are done.
  std::multimap<Clock::time_point, std::function<void()>> computing
      ABSL_GUARDED_BY(mutex);
  std::map<std::pair<uint64_t, uint32_t>, Consumer*> consumers;
  std::chrono::milliseconds bundle_time;
};

class Consumer final {
 public:
  Consumer(Stub& stub, const OpenReply& opened, const OpenRequest& request)
      : stub_(stub) {
    *beat_.mutable_epoch() = opened.epoch();
    *beat_.mutable_opener() = request.opener();
    beat_.set_slot(request.slot());
    beat_.set_want(2 * kHeld * 4);
  }
  // A bundle has come: it is said at once, in place of what waits.
  void Finish(uint64_t bundle) {
    {
      MutexLock lock(&mutex_);
      finished_.insert(bundle);
    }
    Beat();
  }
  void Beat() {
    struct Call {
      grpc::ClientContext context;
      ClientBeat beat;
      ClientReply reply;
    };
    auto call = std::make_shared<Call>();
    {
      MutexLock lock(&mutex_);
      call->beat = beat_;
      for (const uint64_t bundle : finished_) {
        call->beat.add_finished()->set_bundle(bundle);
      }
    }
    stub_.async()->BeatClient(
        &call->context, &call->beat, &call->reply,
        [this, call](const grpc::Status& status) {
          if (!status.ok()) return;  // a newer one is under way
          {
            MutexLock lock(&mutex_);
            beat_.set_term(call->reply.term());
            for (const uint64_t each : call->reply.taken()) {
              finished_.erase(each);
            }
          }
          Beat();
        });
  }

 private:
  Stub& stub_;
  Mutex mutex_;
  ClientBeat beat_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> finished_ ABSL_GUARDED_BY(mutex_);
};

class Caller final {
 public:
  Caller(World& world, Stub& stub, uint64_t id)
      : world_(world), stub_(stub), id_(id) {}
  void Beat() {
    struct Call {
      grpc::ClientContext context;
      WorkerBeat beat;
      WorkerReply reply;
    };
    auto call = std::make_shared<Call>();
    {
      MutexLock lock(&mutex_);
      call->beat.set_worker(id_);
      call->beat.set_address(absl::StrCat("worker:", id_));
      call->beat.set_term(term_);
      call->beat.set_room(waiting_ < kHeld ? kHeld - waiting_ : 0);
      for (const auto& [key, held] : held_) *call->beat.add_held() = held;
      for (const auto& each : made_) *call->beat.add_made() = each;
    }
    stub_.async()->BeatWorker(
        &call->context, &call->beat, &call->reply,
        [this, call](const grpc::Status& status) {
          if (status.ok()) {
            Take(call->reply);
            Beat();
          } else if (status.error_code() != grpc::StatusCode::CANCELLED) {
            BeatLater(status);
          }
        });
  }

 private:
  void Take(const WorkerReply& reply) {
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
    MutexLock lock(&world_.mutex);
    for (const Lease& lease : leases) {
      free_ = std::max(free_, Clock::now()) + world_.bundle_time;
      world_.computing.emplace(free_, [this, lease] { OnComputed(lease); });
    }
  }
  // The connection is not there yet, or there is none any more.
  void BeatLater(const grpc::Status& status) {
    std::fprintf(stderr, "worker %d: %s\n", static_cast<int>(id_),
                 status.error_message().c_str());
    MutexLock lock(&world_.mutex);
    world_.computing.emplace(Clock::now() + std::chrono::milliseconds(100),
                             [this] { Beat(); });
  }
  void OnComputed(const Lease& lease) {
    world_.consumers.at({lease.epoch().run(), lease.slot()})
        ->Finish(lease.bundle());
    {
      MutexLock lock(&mutex_);
      --waiting_;
    }
    Beat();
  }

  World& world_;
  Stub& stub_;
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
                int bundle_ms) {
  World world;
  world.bundle_time = std::chrono::milliseconds(bundle_ms);
  const auto connect = [&] {
    return Dispatcher::NewStub(*rpc::MakeChannel(address, {}));
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
      consumers.push_back(
          std::make_unique<Consumer>(*stubs.back(), opened, request));
      world.consumers[{opened.epoch().run(), slot}] = consumers.back().get();
    }
  }
  for (const auto& consumer : consumers) consumer->Beat();
  for (int i = 0; i < workers; ++i) {
    stubs.push_back(connect());
    callers.push_back(std::make_unique<Caller>(world, *stubs.back(),
                                               static_cast<uint64_t>(i) + 1));
    callers.back()->Beat();
  }
  while (true) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::vector<std::function<void()>> done;
    {
      MutexLock lock(&world.mutex);
      const auto end = world.computing.upper_bound(Clock::now());
      for (auto it = world.computing.begin(); it != end; ++it) {
        done.push_back(it->second);
      }
      world.computing.erase(world.computing.begin(), end);
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
  const pid_t callers = fork();  // before gRPC has threads
  if (callers == 0) {
    char address[64] = "";
    if (read(ends[0], address, sizeof(address) - 1) <= 0) std::_Exit(1);
    RunCallers(address, workers, jobs, bundle_ms);
  }
  DispatcherServer::Options options;
  options.listen = "127.0.0.1:0";
  auto server = DispatcherServer::Start(options);
  if (!server.ok()) return 1;
  const std::string address = (*server)->address();
  if (write(ends[1], address.data(), address.size()) < 0) return 1;
  std::this_thread::sleep_for(std::chrono::seconds(kSettleSeconds));
  const double cpu = CpuSeconds();
  const uint64_t done = DoneIn((*server)->Describe());
  std::this_thread::sleep_for(std::chrono::seconds(kSeconds));
  const State state = (*server)->Describe();
  std::printf(
      "%d workers, %d jobs: %.1f %% of a processor, %.0f bundles per second, "
      "%zu calls wait\n",
      state.workers_size(), state.jobs_size(),
      100 * (CpuSeconds() - cpu) / kSeconds,
      static_cast<double>(DoneIn(state) - done) / kSeconds,
      (*server)->num_parked());
  kill(callers, SIGKILL);
  waitpid(callers, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace penstock::service

int main(int argc, char** argv) {
  const auto number = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  return penstock::service::Run(number(1, 1'000), number(2, 100),
                                number(3, 1'000));
}
