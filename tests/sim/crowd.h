// Many workers and jobs in virtual time, with nothing that fails: what piles up
// at a dispatcher. The real dispatcher with its store and its parked calls, and
// the real state machines of workers and readers; bundles have one item, and no
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::sim {

struct Crowd {
  uint64_t workers = 10'000;
  uint64_t jobs = 100;
  uint32_t readers = 16;  // of each job
  int64_t bundle_ms = 3'000;
  int64_t seconds = 40;  // of virtual time
};

// What there is at one time.
struct Piles {
  size_t parked = 0;   // calls that wait
  size_t senders = 0;  // that are known
  size_t records = 0;  // in the store
  size_t bundles = 0;  // that were begun and are not done
  uint64_t done = 0;   // since the beginning
};

struct CrowdOutcome {
  std::vector<Piles> each_second;
  double seconds = 0;  // of real time
  uint64_t commits = 0;

  // The largest in a part of the time, [begin, end) of it as fractions.
  Piles Most(double begin, double end) const;
  std::string ToString(const Crowd& crowd) const;
};

CrowdOutcome Gather(const Crowd& crowd);

}  // namespace penstock::sim
