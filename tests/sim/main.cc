// sim: the service's state machines in virtual time, seed by seed.
//
//   sim 1 20000          all these seeds; prints those that go wrong
//   sim --first 1 20000  the same, up to the first that goes wrong
//   sim --story 17       one seed, as a story
//   sim --crowd 10000 100  so many workers and jobs: what piles up
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "sim/cluster.h"
#include "sim/crowd.h"

namespace {

using penstock::sim::Outcome;
using penstock::sim::Plan;
using penstock::sim::Simulate;

constexpr int kMostShown = 10;

int Story(uint64_t seed) {
  const Plan plan = Plan::Of(seed);
  std::printf("%s\n", plan.ToString().c_str());
  std::fflush(stdout);
  const Outcome outcome = Simulate(plan, true);
  for (const std::string& line : outcome.story) {
    std::printf("%s\n", line.c_str());
  }
  std::printf("%s after %lld ms, %llu items\n",
              outcome.is_right ? "right" : outcome.what.c_str(),
              static_cast<long long>(outcome.virtual_ms),
              static_cast<unsigned long long>(outcome.items));
  return outcome.is_right ? 0 : 1;
}

int All(uint64_t first, uint64_t last, bool stops) {
  const auto start = std::chrono::steady_clock::now();
  uint64_t wrong = 0, items = 0, faults = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const Plan plan = Plan::Of(seed);
    const Outcome outcome = Simulate(plan, false);
    items += outcome.items;
    faults += outcome.faults;
    if (outcome.is_right) continue;
    if (++wrong <= kMostShown) {
      std::printf("%s\n  %s\n", plan.ToString().c_str(), outcome.what.c_str());
    }
    if (stops) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed),
                  outcome.what.c_str());
      return 1;
    }
  }
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - start;
  std::printf(
      "sim: %llu seeds, %llu items, %llu faults in %.1f s: %llu wrong%s\n",
      static_cast<unsigned long long>(last - first + 1),
      static_cast<unsigned long long>(items),
      static_cast<unsigned long long>(faults), spent.count(),
      static_cast<unsigned long long>(wrong),
      wrong > 0 ? " (sim --story SEED tells one)" : "");
  return wrong > 0 ? 1 : 0;
}

int ShowCrowd(uint64_t workers, uint64_t jobs) {
  penstock::sim::Crowd crowd;
  crowd.workers = workers;
  crowd.jobs = jobs;
  std::printf("%s", Gather(crowd).ToString(crowd).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--story") == 0) {
    return Story(std::strtoull(argv[2], nullptr, 10));
  }
  if (argc == 4 && std::strcmp(argv[1], "--crowd") == 0) {
    return ShowCrowd(std::strtoull(argv[2], nullptr, 10),
                     std::strtoull(argv[3], nullptr, 10));
  }
  const bool stops = argc == 4 && std::strcmp(argv[1], "--first") == 0;
  if (argc == 3 || stops) {
    return All(std::strtoull(argv[argc - 2], nullptr, 10),
               std::strtoull(argv[argc - 1], nullptr, 10), stops);
  }
  std::fprintf(stderr,
               "usage: sim [--first] FIRST LAST | sim --story SEED | "
               "sim --crowd WORKERS JOBS\n");
  return 2;
}
