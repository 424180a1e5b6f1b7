// How fast bundles are read: tools/build release read_bench, then run it.
//
//   read_bench [GIGABYTES]
//
// A worker and a client in one process: rates are of computing (one addition a
// row) and reading together. "tcp" has the frames over loopback, "memory" by
// their place. Then several readers of one bundle, each for itself or all of
// one computation, with the processor time of the whole process.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/service/worker/fake_dispatcher_testing.h"
#include "penstock/service/worker/local_client_testing.h"
#include "penstock/service/worker/reading_testing.h"
#include "penstock/service/worker/worker_server.h"

namespace penstock::service {
namespace {

constexpr uint64_t kManifest = 1;

struct Cost {
  double seconds = 0;
  uint64_t frames = 0;
  uint64_t bytes = 0;
};

double CpuSeconds() {
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

Cost Read(WorkerServer& worker, uint64_t bundle, const std::string& key,
          LocalClient* client, uint64_t run = 1) {
  const int64_t start = SteadyClock().NowNanos();
  Cost cost;
  TestReading reading(worker.address());
  ReadRequest request;
  request.mutable_epoch()->set_run(run);
  request.set_bundle(bundle);
  request.set_credit_bytes(64 << 20);
  request.set_local_key(key);
  reading.Send(request);
  uint64_t owed = 0;
  while (true) {
    const std::optional<FrameHeader> header = reading.NextHeader();
    if (!header.has_value()) break;
    const bool is_whole =
        header->has_place() ||
        header->piece_offset() + header->piece_bytes() == header->frame_bytes();
    if (header->has_place()) {
      client->Release(header->place().frame()).IgnoreError();
    }
    if (!is_whole) continue;
    ++cost.frames;
    cost.bytes += header->frame_bytes();
    owed += header->frame_bytes();
    if (owed > (8 << 20)) {
      reading.AddCredit(owed);
      owed = 0;
    }
    if (header->is_end()) break;
  }
  cost.seconds = static_cast<double>(SteadyClock().NowNanos() - start) / 1e9;
  return cost;
}

void Print(const char* name, const Cost& cost) {
  std::printf("%-28s %8.0f frames/s %7.3f GB/s  (%llu frames, %.2f s)\n", name,
              static_cast<double>(cost.frames) / cost.seconds,
              static_cast<double>(cost.bytes) / cost.seconds / 1e9,
              static_cast<unsigned long long>(cost.frames), cost.seconds);
}

void Run(const char* name, const plan::Plan& plan, uint64_t rows) {
  FakeDispatcher dispatcher;
  PlanBundle bundle;
  plan.SerializeToString(bundle.mutable_plan());
  dispatcher.AddPlan("plan", bundle.SerializeAsString());
  Manifest manifest;
  manifest.set_rows(rows * 4);
  manifest.set_rows_per_bundle(rows);
  manifest.set_passes(1);
  dispatcher.AddManifest(kManifest, manifest);
  WorkerServer::Options options;
  options.dispatcher = dispatcher.address();
  options.memory_bytes = int64_t{1} << 30;
  auto worker = WorkerServer::Start(options);
  if (!worker.ok()) std::abort();
  for (uint64_t i = 0; i < 4; ++i) {
    Lease lease;
    lease.mutable_epoch()->set_run(1);
    lease.set_bundle(i);
    lease.set_attempt(i + 1);
    lease.set_plan("plan");
    lease.set_manifest(kManifest);
    dispatcher.Grant(lease);
    auto client = LocalClient::Connect((*worker)->local_socket());
    const bool is_local = i % 2 == 1;
    const Cost cost =
        Read(**worker, i, is_local ? (*client)->key() : "", client->get());
    Print((std::string(name) + (is_local ? ", memory" : ", tcp")).c_str(),
          cost);
    dispatcher.Revoke(i);
  }
}

enum class Way { kNone, kAll, kLanes };

// `readers` at once of the first bundle, by memory.
void RunMany(const char* name, const plan::Plan& plan, uint64_t rows,
             uint32_t readers, Way way) {
  FakeDispatcher dispatcher;
  PlanBundle bundle;
  plan.SerializeToString(bundle.mutable_plan());
  dispatcher.AddPlan("plan", bundle.SerializeAsString());
  Manifest manifest;
  manifest.set_rows(rows);
  manifest.set_rows_per_bundle(rows);
  manifest.set_passes(1);
  dispatcher.AddManifest(kManifest, manifest);
  WorkerServer::Options options;
  options.dispatcher = dispatcher.address();
  options.memory_bytes = int64_t{1} << 30;
  auto worker = WorkerServer::Start(options);
  if (!worker.ok()) std::abort();
  const double cpu = CpuSeconds();
  const int64_t start = SteadyClock().NowNanos();
  for (uint32_t i = 0; i < readers; ++i) {
    Lease lease;
    lease.mutable_epoch()->set_run(i + 1);
    lease.set_attempt(i + 1);
    lease.set_plan("plan");
    lease.set_manifest(kManifest);
    if (way != Way::kNone) {
      lease.mutable_sharing()->set_production(1);
    }
    if (way == Way::kLanes) {
      lease.mutable_sharing()->set_lanes(readers);
      lease.mutable_sharing()->set_lane(i);
    }
    dispatcher.Grant(lease);
  }
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < readers; ++i) {
    threads.emplace_back([&, i] {
      auto client = LocalClient::Connect((*worker)->local_socket());
      Read(**worker, 0, (*client)->key(), client->get(), i + 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const char* const how[] = {"each for itself", "all of one", "one in rounds"};
  std::printf("%-18s %2u readers, %-15s %6.2f s, %6.2f s of CPU\n", name,
              readers, how[static_cast<int>(way)],
              static_cast<double>(SteadyClock().NowNanos() - start) / 1e9,
              CpuSeconds() - cpu);
}

}  // namespace
}  // namespace penstock::service

int main(int argc, char** argv) {
  using penstock::plan_testing::AddConstant;
  using penstock::plan_testing::Batch;
  using penstock::plan_testing::Map;
  using penstock::plan_testing::Range;
  const double gigabytes = argc > 1 ? std::atof(argv[1]) : 1;
  const auto rows = static_cast<uint64_t>(gigabytes * 1e9 / 8);
  const auto all = static_cast<int64_t>(rows * 4);
  penstock::service::Run("int64 rows", Map(Range(all), AddConstant(1)), rows);
  penstock::service::Run("batches of 1 MB",
                         Batch(Map(Range(all), AddConstant(1)), 125'000), rows);
  penstock::service::Run("batches of 16 KB",
                         Batch(Map(Range(all), AddConstant(1)), 2'000), rows);
  const std::pair<const char*, penstock::plan::Plan> plans[] = {
      {"int64 rows", Map(Range(all), AddConstant(1))},
      {"batches of 1 MB", Batch(Map(Range(all), AddConstant(1)), 125'000)},
      {"batches of 16 KB", Batch(Map(Range(all), AddConstant(1)), 2'000)}};
  using penstock::service::RunMany;
  using penstock::service::Way;
  for (const auto& [name, plan] : plans) {
    RunMany(name, plan, rows, 1, Way::kNone);
    RunMany(name, plan, rows, 1, Way::kAll);
    RunMany(name, plan, rows, 8, Way::kNone);
    RunMany(name, plan, rows, 8, Way::kAll);
    RunMany(name, plan, rows, 8, Way::kLanes);
  }
  return 0;
}
