// How many small commits a second are made durable, with and without groups:
//
//   group_commit_bench DIRECTORY [SECONDS]
//
// Each thread commits one bundle's record at a time and waits until it is
// durable, as a dispatcher's calls do; "queued" has 64 under way per thread.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/service/store/group_commit.h"
#include "penstock/service/store/sqlite_store.h"

namespace penstock::store {
namespace {

constexpr int kThreads = 8;

WriteBatch Batch(int thread, int64_t i) {
  return {
      {absl::StrCat("bind/", thread, "/", i % 100'000), std::string(24, 'b')}};
}

// Calls `commit(thread, i)` from `num_threads` threads; returns calls a second.
template <typename Commit>
double Rate(int num_threads, double seconds, Commit commit) {
  std::atomic<int64_t> num_calls = 0;
  const int64_t start_ns = SteadyClock().NowNanos();
  const int64_t end_ns = start_ns + static_cast<int64_t>(seconds * 1e9);
  std::vector<std::thread> threads;
  for (int t = 0; t < num_threads; ++t) {
    threads.emplace_back([&, t] {
      int64_t i = 0;
      while (SteadyClock().NowNanos() < end_ns) commit(t, i++);
      num_calls += i;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return static_cast<double>(num_calls) * 1e9 /
         static_cast<double>(SteadyClock().NowNanos() - start_ns);
}

void OrDie(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

void Run(const std::string& directory, double seconds) {
  auto opened = OpenSqliteStore(directory);
  OrDie(opened.status());
  MetaStore& store = **opened;
  const uint64_t term = *store.Campaign("bench");

  const auto alone = [&](int t, int64_t i) {
    OrDie(store.Commit(Batch(t, i), term));
  };
  std::printf("no groups, 1 thread:  %8.0f batches/s\n",
              Rate(1, seconds, alone));
  std::printf("no groups, %d threads: %8.0f batches/s\n", kThreads,
              Rate(kThreads, seconds, alone));

  for (const int num_threads : {1, kThreads}) {
    GroupCommit queue(store, SteadyClock());
    queue.Start();
    const double rate = Rate(num_threads, seconds, [&](int t, int64_t i) {
      std::atomic<bool> is_done = false;
      queue.Commit(Batch(t, i), term, [&](const absl::Status& status) {
        OrDie(status);
        is_done = true;
        is_done.notify_one();
      });
      is_done.wait(false);
    });
    std::printf("groups, %d thread%s:    %8.0f batches/s\n", num_threads,
                num_threads == 1 ? " " : "s", rate);
  }
  GroupCommit queue(store, SteadyClock());
  queue.Start();
  std::vector<std::atomic<int64_t>> num_done(kThreads);
  const double rate = Rate(kThreads, seconds, [&](int t, int64_t i) {
    for (int64_t done = num_done[t]; i - done >= 64; done = num_done[t]) {
      num_done[t].wait(done);
    }
    queue.Commit(Batch(t, i), term, [&, t](const absl::Status& status) {
      OrDie(status);
      ++num_done[t];
      num_done[t].notify_one();
    });
  });
  OrDie(queue.Flush());
  std::printf("queued, %d threads:    %8.0f batches/s\n", kThreads, rate);
}

}  // namespace
}  // namespace penstock::store

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: group_commit_bench DIRECTORY [SECONDS]\n");
    return 2;
  }
  penstock::store::Run(argv[1], argc > 2 ? std::atof(argv[2]) : 3.0);
  return 0;
}
