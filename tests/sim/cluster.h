// A service in virtual time: the real state machines of dispatcher, workers and
// clients, with everything around them made up: a network that loses, repeats
// and delays, a disk that forgets what was not committed, processes that die,
// hang, and come back as others.
//
// Items are numbers: a trainer writes down each one that it gets. When all have
// ended, what they wrote down must be every item of the epoch, once. Rows that
// a checkpoint had begun to give come once more in the same order; and where
// nothing but drains happens, no bundle is begun at one worker and ended at
// another.
//
// Members of a group have all items each; in rounds, the rows with the same
// number are of one round, whatever becomes of whom and however many they
// become (rounds.h). Where nothing fails, each bundle is computed once for all
// of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/world.h"

namespace penstock::sim {

struct Plan {
  uint64_t seed = 0;
  int workers = 2;
  int consumers = 1;
  uint64_t bundles = 12;
  uint64_t most_items = 9;  // of a bundle; some have none
  bool is_ordered = false;
  bool is_at_most_once = false;
  bool is_static = false;       // `bundles` are the workers' shards
  bool is_each_worker = false;  // each worker that comes has a bundle
  // Consumers are members of a group: each has all items; or, in rounds, each
  // its own of every round.
  bool is_shared = false;
  bool is_in_rounds = false;
  // Of the pipeline after the client (row_feed.h), and of its frames.
  uint64_t group_size = 1;
  uint64_t group_rows = 1;
  uint64_t most_rows = 1;       // of a frame
  uint64_t most_held = 0;       // rows that it holds back
  uint64_t budget = 1'000'000;  // items that may wait
  double loss = 0;              // of messages
  double duplication = 0;
  int64_t most_delay_ms = 5;
  double broken_reads = 0;  // per frame
  // Faults of each kind, at random times in the first `fault_ms`.
  int64_t fault_ms = 20'000;
  int dispatcher_crashes = 0;
  int zombies = 0;
  int disk_errors = 0;  // a commit fails, written or not: the dispatcher ends
  int full_disks = 0;
  int worker_crashes = 0;
  int worker_pauses = 0;
  int drains = 0;
  int engine_deaths = 0;
  int restores = 0;
  int departures = 0;  // of consumers that release what they have
  // Of members: one dies, and comes back with its state, or without.
  int comebacks = 0;
  int rejoins = 0;
  // Of members that read in rounds: they become more or fewer, all at one round
  // that they have had together, or each as it comes to it.
  int resizes = 0;
  bool are_in_step = false;

  // Everything may happen.
  static Plan Random(uint64_t seed);
  // Nothing fails; workers are drained, and consumers may leave.
  static Plan Draining(uint64_t seed);
  // Of a seed: now one, now the other.
  static Plan Of(uint64_t seed);
  static void MakeByWorker(Rng& shape, Plan& plan);
  static void MakeGroup(Rng& shape, Plan& plan);
  // One dispatcher after the other takes the place of the one before.
  static void MakeTakeovers(Rng& turns, Plan& plan);
  void MakeQuiet();  // nothing happens
  bool is_calm() const;
  std::string ToString() const;
  bool is_by_worker() const { return is_static || is_each_worker; }
  bool is_group() const { return is_shared || is_in_rounds; }
  // What a lost worker had begun does not come again.
  bool may_lose() const { return is_at_most_once || is_each_worker; }
};

struct Outcome {
  bool is_right = false;
  std::string what;  // is wrong
  uint64_t digest = 0;
  int64_t virtual_ms = 0;
  uint64_t items = 0;
  uint64_t faults = 0;
  std::vector<std::string> story;
};

Outcome Simulate(const Plan& plan, bool keeps_story);

}  // namespace penstock::sim
