// How fast the pipeline can be, and what it runs into first.
//
//   X = min( cores / sum of CPU,  tasks of a node / its time,  one task / the
//            time of nodes that it runs inline,  disk,  reads under way / time
//            of reads,  a service's workers and network,  the consumer )
//
// in root elements a second, with the scalability law of each node, the cost of
// hand-overs, and what an ordered window loses to slow rows.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/tuner/model.h"

namespace penstock::tuner {

enum class Wall {
  kNothing,      // no demand was measured
  kWorkers,      // of the service that rows come from
  kCores,        // all cores, of all nodes
  kTasks,        // the parallelism of a node
  kSequential,   // a node that cannot be parallel
  kSerialized,   // a node whose tasks wait for each other, as for Python's lock
  kStage,        // nodes that one task runs inline
  kReorder,      // slow rows hold up an ordered window
  kHandOver,     // threads wake each other for a few rows at a time
  kReadLatency,  // reads under way
  kDiskBytes,
  kDiskSeeks,  // between files that are read in turn
  kDiskOps,
  kKeptBytes,    // rows that are read back from disk
  kMemoryBytes,  // copies in memory
  kNetworkBytes,
  kConsumer,
  kNoOverlap,  // nothing is ready when the consumer asks
};

// "cores", "tasks", …: fit for a table.
const char* WallName(Wall wall);

// Faster than this is as good as without a limit.
inline constexpr double kUnlimitedRate = 1e12;
// What a node may be given at most, whatever it costs.
inline constexpr int64_t kMaxTasks = 1024;
inline constexpr int64_t kMaxReadDepth = 64;
// And of one read, where the disk seeks.
inline constexpr double kMaxReadBytes = 8 << 20;

// Until a thread that waits for rows, or for room, goes on.
inline constexpr double kWakeSeconds = 15e-6;

struct Limit {
  Wall wall = Wall::kNothing;
  int node = -1;  // place in Model::nodes, where it is one node's
  double rate = kUnlimitedRate;
  double demand = 0;    // per root element
  double capacity = 0;  // of the same unit, per second
};

struct Bound {
  Interval rate;
  // Least first: the first binds, the second is the next wall. At most 16.
  std::vector<Limit> limits;

  const Limit& wall() const { return limits.front(); }
  // By how much X rises, as a share, once the wall is gone; infinite if
  // nothing else limits.
  double next_wall_gain() const;
};

enum class KnobsAre {
  kInForce,  // as they are
  kFree,     // as good as they can be chosen; what the user pinned stays
};

// O(nodes). Never NaN, and never over kUnlimitedRate.
Bound FindBound(const Model& model, KnobsAre knobs);

// The cores that the pipeline uses at a rate, the law of each node included.
double CoresAt(const Model& model, double rate);

// How many tasks' worth of work an ordered window of `rows` rows lets `tasks`
// tasks do: less than `tasks` if rows that take long hold up the others.
double TasksInWindow(const plan::Histogram& service_ns, double tasks,
                     double rows);

}  // namespace penstock::tuner
