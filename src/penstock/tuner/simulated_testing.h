// For tests: a pipeline that answers knobs with rates and counters.
//
// Not the tuner's model, but a small one of its own: tasks, cores that others
// may take, reads, ordered windows, a consumer, a cache that fills in the first
// epoch; and noise, of a fixed seed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "penstock/knobs.pb.h"
#include "penstock/snapshot.pb.h"

namespace penstock::tuner {

struct SimulatedNode {
  std::string name;
  plan::Node::OpCase op = plan::Node::kMap;
  double visits = 64;       // rows per root element
  double cpu_seconds = 0;   // of a row
  double wait_seconds = 0;  // of a row, beside it: a sleep
  double row_bytes = 1000;
  bool is_sequential = false;
  bool is_random = false;
  bool is_pinned = false;  // all its knobs are the user's
  int64_t parallelism = 1;
  double read_seconds = 0;  // of a row
  int64_t read_depth = 0;
  double slow_share = 0;  // of rows, and how many times as long they take
  double slow_factor = 1;
  int64_t reorder_rows = 0;
  std::optional<int64_t> cardinality;
};

struct SimulatedRun {
  std::vector<SimulatedNode> nodes;  // the last is the root
  double cores = 4;
  double memory_bytes = 8e9;
  double consumer_seconds = 1e-4;
  double consumer_cv = 0;
  std::optional<int64_t> output_rows;
  double epoch_roots = 1e12;  // a cache is full after so many
  double noise = 0.03;        // of a window's rate, relative
  uint64_t seed = 1;
  uint64_t id = 1;  // of the run
  // Cores that others use, and what costs are multiplied by, at a time.
  std::function<double(double seconds)> others = [](double) { return 0; };
  std::function<double(double seconds, const std::string& node)> factor =
      [](double, const std::string&) { return 1; };
  // Whether the pipeline gives anything at all.
  bool is_stuck = false;
};

class Simulator final {
 public:
  explicit Simulator(SimulatedRun run);

  void Apply(const plan::Knobs& knobs) { knobs_ = knobs; }
  const plan::Knobs& knobs() const { return knobs_; }
  // Runs on; what is counted then.
  plan::Snapshot Run(double seconds);
  // Root elements a second under these knobs, without noise. `is_cached`: the
  // cache of the knobs, if any, is full.
  double RateOf(const plan::Knobs& knobs, bool is_cached) const;
  double RateNow() const { return RateOf(knobs_, IsCacheFull()); }
  // The best of a grid over all knobs that are not pinned, without a cache.
  double BestRate() const;
  double seconds() const { return seconds_; }
  double roots() const { return roots_; }

 private:
  struct Totals {
    double rows = 0, busy = 0, cpu = 0, reads = 0;
  };
  struct Solved {
    double rate = 0;
    double inflation = 1;        // of tasks' time, by waiting for cores
    double waste = 1;            // of CPU, by too many threads
    std::vector<double> slower;  // of each node's work, by its other tasks
  };

  Solved Solve(const plan::Knobs& knobs, bool is_cached) const;
  bool IsCacheFull() const;
  int64_t Tasks(const plan::Knobs& knobs, size_t node) const;
  // What share of the node's work is left by a full cache.
  double LeftByCache(const plan::Knobs& knobs, size_t node) const;

  const SimulatedRun run_;
  plan::Knobs knobs_;
  std::mt19937_64 random_;
  std::vector<Totals> totals_;
  double seconds_ = 0;
  double roots_ = 0;
  double waited_ = 0;  // the consumer, in seconds
  double roots_when_cached_ = -1;
};

}  // namespace penstock::tuner
