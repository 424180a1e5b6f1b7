#include "penstock/tuner/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "penstock/tuner/buffers.h"
#include "penstock/tuner/histogram.h"

namespace penstock::tuner {
namespace {

constexpr size_t kMaxLimits = 16;
constexpr double kErrors = 2;  // standard errors of an interval
// Of the device's time, the share for bytes from which on seeks are not it.
constexpr double kMostlyBytes = 0.75;
// Of reading rows back: one file was read once, and rows are checked as well.
constexpr double kKeptError = 0.2;
// A limit of memory so many times what there is now is worth a line.
constexpr double kWithinReach = 2;
// Times the lowest limit: what is so near is felt, too.
constexpr double kNearlyTheLimit = 1.5;
// Of the time of what is the limit: waits that are shorter are nobody's wall.
constexpr double kFeltWait = 0.05;

double Shifted(const Estimate& estimate, double errors) {
  // However uncertain, what was seen to cost something costs something.
  return std::max(estimate.value + errors * estimate.error,
                  0.25 * estimate.value);
}

// How many times over a node's dataset is run: the parallelism of the nodes
// whose functions it is in.
std::vector<double> OuterTasks(const Model& model, KnobsAre knobs) {
  std::vector<double> outer(model.nodes.size(), 1);
  for (size_t i = model.nodes.size(); i-- > 0;) {
    const int inside = model.nodes[i].inside;
    if (inside < 0) continue;
    const NodeModel& around = model.nodes[inside];
    const bool is_fixed = knobs == KnobsAre::kInForce || around.is_pinned ||
                          around.is_sequential || around.is_serialized;
    const auto tasks = static_cast<double>(is_fixed ? around.parallelism
                                                    : around.max_parallelism);
    outer[i] = std::min(outer[inside] * tasks, static_cast<double>(kMaxTasks));
  }
  return outer;
}

// What does not depend on the errors: found once for three solutions.
struct Tasks {
  std::vector<double> own;     // what a node's tasks are at most
  std::vector<double> window;  // the same, as the ordered window leaves them
};

Tasks TasksOf(const Model& model, KnobsAre knobs) {
  Tasks tasks;
  const std::vector<double> outer = OuterTasks(model, knobs);
  tasks.own.resize(model.nodes.size());
  tasks.window.resize(model.nodes.size(),
                      std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const NodeModel& node = model.nodes[i];
    const bool is_fixed =
        knobs == KnobsAre::kInForce || node.is_pinned || node.is_sequential;
    auto own =
        static_cast<double>(is_fixed ? node.parallelism : node.max_parallelism);
    own = std::min(own * outer[i], static_cast<double>(kMaxTasks));
    if (node.is_serialized) own = 1;
    tasks.own[i] = own;
    if (!node.keeps_order || own <= 1) continue;
    const plan::Histogram& service = (*model.measured)[i].service_ns;
    const auto rows = node.reorder_rows > 0
                          ? static_cast<double>(node.reorder_rows)
                          : OwnWindowRows(node.parallelism, RowsPerChunk(node));
    if (knobs == KnobsAre::kInForce) {
      tasks.window[i] = TasksInWindow(service, own, rows);
    } else if (node.is_reorder_pinned) {
      // As many tasks as do best in it.
      double best = 1;
      for (double count = 2; count <= own; count *= 2) {
        best = std::max(best, TasksInWindow(service, count, rows));
      }
      tasks.window[i] = best;
    }
  }
  return tasks;
}

double OverheadOf(const Model& model, double errors) {
  return HandOverCpu(model) + Shifted(model.unattributed, errors);
}

double Least(const std::vector<Limit>& limits) {
  double rate = kUnlimitedRate;
  for (const Limit& limit : limits) rate = std::min(rate, limit.rate);
  return rate;
}

class Solver final {
 public:
  Solver(const Model& model, const Tasks& tasks, KnobsAre knobs, double errors)
      : model_(model), tasks_(tasks), knobs_(knobs), errors_(errors) {}

  // All limits, in no order.
  std::vector<Limit> Solve() {
    AddNodes();
    AddStages();
    AddDisk();
    AddBytes(Wall::kKeptBytes, &NodeModel::kept_bytes,
             model_.resources.kept_bytes_per_second, kKeptError);
    AddBytes(Wall::kNetworkBytes, &NodeModel::network_bytes,
             model_.resources.network_bytes_per_second, 0);
    AddMemory(Least(limits_));
    double producer = Least(limits_);
    producer = std::min(producer, AddCores(producer));
    AddHandOvers();
    producer = Least(limits_);
    AddConsumer(producer);
    return std::move(limits_);
  }

 private:
  void Add(Wall wall, int node, double demand, double capacity) {
    if (!(demand > 0) || !(capacity >= 0)) return;
    const double rate = std::min(capacity / demand, kUnlimitedRate);
    limits_.push_back({wall, node, rate, demand, capacity});
  }

  // The law as it may be at this end of the interval.
  Scaling LawOf(const NodeModel& node) const {
    const double factor = errors_ > 0 ? 2 : errors_ < 0 ? 0.5 : 1;
    return {std::min(node.scaling.contention * factor, 1.0),
            node.scaling.coherence * factor};
  }

  void AddNodes() {
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      const NodeModel& node = model_.nodes[i];
      const int place = static_cast<int>(i);
      const double busy = Shifted(node.busy, errors_);
      if (busy > 0) {
        const Wall wall = node.is_serialized   ? Wall::kSerialized
                          : node.is_sequential ? Wall::kSequential
                                               : Wall::kTasks;
        Add(wall, place, busy, WorkOf(LawOf(node), tasks_.own[i]));
        if (tasks_.window[i] < tasks_.own[i]) {
          Add(Wall::kReorder, place, busy,
              WorkOf(LawOf(node), tasks_.window[i]));
        }
      }
      int64_t depth = node.read_depth;
      if (depth > 0 && knobs_ == KnobsAre::kFree && !node.is_read_pinned) {
        depth = std::max(
            depth,
            std::min(kMaxReadDepth, node.read_sources * node.reads_of_file));
      }
      if (depth > 0) {
        Add(Wall::kReadLatency, place, Shifted(node.read_time, errors_),
            static_cast<double>(depth));
      }
      Add(Wall::kWorkers, place, Shifted(node.workers_time, errors_), 1);
    }
  }

  void AddStages() {
    struct Stage {
      double busy = 0;
      double tasks = std::numeric_limits<double>::infinity();
      int costliest = -1;
      double most = 0;
      int nodes = 0;
    };
    absl::flat_hash_map<uint32_t, Stage> stages;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      const NodeModel& node = model_.nodes[i];
      // What has tasks of its own does not take its puller's time.
      if (!node.stage || node.is_cached) continue;
      if (!node.is_sequential && knobs_ == KnobsAre::kFree) continue;
      if (node.parallelism > 1 || node.is_serialized) continue;
      const double busy = Shifted(node.busy, errors_);
      if (busy <= 0) continue;
      Stage& stage = stages[*node.stage];
      stage.busy += busy;
      stage.tasks = std::min(stage.tasks, tasks_.own[i]);
      ++stage.nodes;
      if (busy > stage.most) {
        stage.most = busy;
        stage.costliest = static_cast<int>(i);
      }
    }
    for (const auto& [number, stage] : stages) {
      if (stage.nodes > 1) {
        Add(Wall::kStage, stage.costliest, stage.busy, stage.tasks);
      }
    }
  }

  void AddDisk() {
    double bytes = 0;
    double ops = 0;
    for (const NodeModel& node : model_.nodes) {
      bytes += Shifted(node.disk_bytes, errors_);
      ops += Shifted(node.disk_ops, errors_);
    }
    const Resources& resources = model_.resources;
    if (resources.disk) {
      AddDiskLaw(*resources.disk, bytes);
    } else if (resources.disk_bytes_per_second) {
      Add(Wall::kDiskBytes, -1, bytes, *resources.disk_bytes_per_second);
    }
    if (resources.disk_ops_per_second) {
      Add(Wall::kDiskOps, -1, ops, *resources.disk_ops_per_second);
    }
  }

  // What the curve allows, all reading nodes together.
  void AddDiskLaw(const DiskLaw& law, double bytes) {
    double time = 0;  // of the device, per root element
    double without_seeks = 0;
    for (const NodeModel& node : model_.nodes) {
      const double own = Shifted(node.disk_bytes, errors_);
      if (own <= 0) continue;
      const bool is_free =
          knobs_ == KnobsAre::kFree && !node.is_read_bytes_pinned;
      const double now = node.read_bytes * node.reads_in_a_row;
      const double size = is_free ? std::max(now, kMaxReadBytes) : now;
      time += own / MostBytesPerSecond(law, size,
                                       static_cast<double>(node.read_sources));
      without_seeks += own / law.peak;
    }
    if (time <= 0) return;
    const double sure = std::max(0.25, 1 - errors_ * law.error);
    const bool seeks = without_seeks < kMostlyBytes * time;
    Add(seeks ? Wall::kDiskSeeks : Wall::kDiskBytes, -1, bytes,
        bytes / time * sure);
  }

  // Bytes of all nodes, of what gives so many a second; `error` is of that.
  void AddBytes(Wall wall, Estimate NodeModel::*of,
                const std::optional<double>& speed, double error) {
    if (!speed) return;
    double bytes = 0;
    for (const NodeModel& node : model_.nodes) {
      bytes += Shifted(node.*of, errors_);
    }
    Add(wall, -1, bytes, *speed * (1 - errors_ * error));
  }

  // Rows that are copied go through memory. Named where it is within reach:
  // `others` is what all else allows.
  void AddMemory(double others) {
    const std::optional<double>& speed =
        model_.resources.memory_bytes_per_second;
    if (!speed) return;
    double bytes = 0;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      const NodeModel& node = model_.nodes[i];
      const double own =
          node.visits * (1 - node.handed_on) * (*model_.measured)[i].row_bytes;
      // What is given faster than memory is was passed on, and not touched.
      if (own <= node.busy.value * *speed) bytes += own;
    }
    if (bytes * others * kWithinReach >= *speed) {
      Add(Wall::kMemoryBytes, -1, bytes, *speed);
    }
  }

  // Cores in use at `rate`, and by how much they rise with it.
  std::pair<double, double> Cores(double rate, double overhead) const {
    double cores = rate * overhead;
    double slope = overhead;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      const NodeModel& node = model_.nodes[i];
      const double busy = Shifted(node.busy, errors_);
      if (busy <= 0) continue;
      const double work = rate * busy;
      const double cores_of_one = Shifted(node.cpu, errors_) / busy;
      if (work <= 1 || tasks_.own[i] <= 1) {
        cores += work * cores_of_one;
        slope += busy * cores_of_one;
        continue;
      }
      const Scaling law = LawOf(node);
      const double tasks = TasksFor(law, work);
      if (!std::isfinite(tasks)) {
        return {std::numeric_limits<double>::infinity(), 0};
      }
      cores += tasks * cores_of_one;
      const double steep = 1 - work * (2 * law.coherence * tasks +
                                       law.contention - law.coherence);
      slope += tasks / work / std::max(steep, 1e-9) * busy * cores_of_one;
    }
    return {cores, slope};
  }

  // The rate at which all cores are in use, where the others allow `most`.
  double AddCores(double most) {
    const double capacity = model_.resources.cores;
    const double overhead = OverheadOf(model_, errors_);
    double demand = overhead;
    for (const NodeModel& node : model_.nodes) {
      demand += Shifted(node.cpu, errors_);
    }
    if (demand <= 0) return kUnlimitedRate;
    // Convex and rising: from the right, Newton's steps stay on the right.
    double rate =
        std::min({capacity / demand, most * (1 - 1e-9), kUnlimitedRate});
    for (int step = 0; step < 40; ++step) {
      const auto [cores, slope] = Cores(rate, overhead);
      if (!std::isfinite(cores)) {
        rate *= 0.5;
        continue;
      }
      if (cores <= capacity || slope <= 0) {
        // Others bind first: how far the cores are, in proportion.
        if (step == 0 && cores > 0) {
          rate = std::max(rate, rate * capacity / cores);
        }
        break;
      }
      const double next = rate - (cores - capacity) / slope;
      if (!(next > 0) || next >= rate || rate - next < 1e-12 * rate) break;
      rate = next;
    }
    rate = std::min(rate, kUnlimitedRate);
    limits_.push_back({Wall::kCores, -1, rate, capacity / rate, capacity});
    return rate;
  }

  // A small buffer is filled at once, and then one side waits until the other
  // has woken up. Where nodes are the limit, or nearly, that time is lost:
  // nobody else has work for the cores meanwhile.
  void AddHandOvers() {
    if (knobs_ != KnobsAre::kInForce || limits_.empty()) return;
    const double least = std::ranges::min(limits_, {}, &Limit::rate).rate;
    double nodes = kUnlimitedRate;
    for (const Limit& limit : limits_) {
      if (limit.wall == Wall::kTasks || limit.wall == Wall::kSequential ||
          limit.wall == Wall::kStage) {
        nodes = std::min(nodes, limit.rate);
      }
    }
    if (nodes > kNearlyTheLimit * least) return;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      const NodeModel& node = model_.nodes[i];
      if (node.buffer_rows <= 0 || node.is_cached) continue;
      const double wakes = node.visits / static_cast<double>(node.buffer_rows);
      if (wakes * kWakeSeconds * nodes < kFeltWait) continue;
      Add(Wall::kHandOver, static_cast<int>(i),
          1 / nodes + wakes * kWakeSeconds, 1);
    }
  }

  void AddConsumer(double producer) {
    const Resources& resources = model_.resources;
    if (!resources.consumer_time) return;
    const double time = Shifted(*resources.consumer_time, errors_);
    Add(Wall::kConsumer, -1, time, 1);
    if (knobs_ == KnobsAre::kInForce && resources.output_rows == 0) {
      Add(Wall::kNoOverlap, -1, time + 1 / producer, 1);
    }
  }

  const Model& model_;
  const Tasks& tasks_;
  const KnobsAre knobs_;
  const double errors_;
  std::vector<Limit> limits_;
};

}  // namespace

const char* WallName(Wall wall) {
  switch (wall) {
    case Wall::kNothing:
      return "nothing";
    case Wall::kWorkers:
      return "workers";
    case Wall::kCores:
      return "cores";
    case Wall::kTasks:
      return "tasks";
    case Wall::kSequential:
      return "sequential node";
    case Wall::kSerialized:
      return "serialized node";
    case Wall::kStage:
      return "inline nodes";
    case Wall::kReorder:
      return "ordered window";
    case Wall::kHandOver:
      return "hand-overs";
    case Wall::kReadLatency:
      return "reads under way";
    case Wall::kDiskBytes:
      return "disk bytes";
    case Wall::kDiskSeeks:
      return "disk seeks";
    case Wall::kDiskOps:
      return "disk operations";
    case Wall::kKeptBytes:
      return "kept bytes";
    case Wall::kMemoryBytes:
      return "memory bytes";
    case Wall::kNetworkBytes:
      return "network bytes";
    case Wall::kConsumer:
      return "consumer";
    case Wall::kNoOverlap:
      return "no buffer";
  }
  return "nothing";
}

double Bound::next_wall_gain() const {
  if (limits.size() < 2 || limits[0].rate <= 0) {
    return std::numeric_limits<double>::infinity();
  }
  return limits[1].rate / limits[0].rate - 1;
}

double TasksInWindow(const plan::Histogram& service_ns, double tasks,
                     double rows) {
  const double mean = MeanOf(service_ns);
  if (mean <= 0 || tasks <= 1) return tasks;
  // While the oldest row is computed, the other tasks do the window's others;
  // then all wait. Slow rows that are in one window wait together.
  const double covered = rows * mean / std::max(1.0, tasks - 1);
  const Tail tail = TailAbove(service_ns, covered);
  const double together = std::max(1.0, rows * tail.share);
  return mean / (mean / tasks + tail.mean_excess / together);
}

double CoresAt(const Model& model, double rate) {
  double cores = rate * OverheadOf(model, 0);
  for (const NodeModel& node : model.nodes) {
    if (node.busy.value <= 0) continue;
    const double work = rate * node.busy.value;
    const bool is_one = node.is_sequential || node.is_serialized;
    const double tasks = is_one ? work : TasksFor(node.scaling, work);
    cores += tasks * node.cpu.value / node.busy.value;
  }
  return cores;
}

Bound FindBound(const Model& model, KnobsAre knobs) {
  const Tasks tasks = TasksOf(model, knobs);
  Bound bound;
  bound.limits = Solver(model, tasks, knobs, 0).Solve();
  bound.rate.middle = Least(bound.limits);
  bound.rate.low = std::min(
      bound.rate.middle, Least(Solver(model, tasks, knobs, kErrors).Solve()));
  bound.rate.high = std::max(
      bound.rate.middle, Least(Solver(model, tasks, knobs, -kErrors).Solve()));
  if (bound.limits.empty()) bound.limits.push_back({});
  const size_t kept = std::min(kMaxLimits, bound.limits.size());
  const auto order = [](const Limit& a, const Limit& b) {
    return std::tie(a.rate, a.wall, a.node) < std::tie(b.rate, b.wall, b.node);
  };
  std::partial_sort(bound.limits.begin(), bound.limits.begin() + kept,
                    bound.limits.end(), order);
  bound.limits.resize(kept);
  return bound;
}

}  // namespace penstock::tuner
