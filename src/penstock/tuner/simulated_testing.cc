#include "penstock/tuner/simulated_testing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "penstock/plan/snapshot.h"

namespace penstock::tuner {
namespace {

constexpr double kContention = 0.03;  // not the tuner's prior
constexpr double kRowsPerChunk = 16;
constexpr double kNanos = 1e9;

uint64_t Whole(double value) {
  return static_cast<uint64_t>(std::llround(value));
}

void Count(double nanos, double times, plan::Histogram& histogram) {
  const int bucket =
      nanos < 1 ? 0 : 1 + static_cast<int>(std::floor(std::log2(nanos)));
  while (histogram.counts_size() <= bucket) histogram.add_counts(0);
  histogram.set_counts(bucket, histogram.counts(bucket) + Whole(times));
}

const plan::NodeKnobs* KnobsOf(const plan::Knobs& knobs, size_t node) {
  const auto found = knobs.nodes().find(static_cast<uint32_t>(node));
  return found == knobs.nodes().end() ? nullptr : &found->second;
}

void Set(plan::Knob* knob, int64_t value, bool is_pinned) {
  knob->set_value(value);
  knob->set_chosen_by(is_pinned ? plan::USER : plan::CHOOSER_UNSPECIFIED);
}

}  // namespace

Simulator::Simulator(SimulatedRun run)
    : run_(std::move(run)), random_(run_.seed), totals_(run_.nodes.size()) {
  for (size_t i = 0; i < run_.nodes.size(); ++i) {
    const SimulatedNode& node = run_.nodes[i];
    plan::NodeKnobs& knobs =
        (*knobs_.mutable_nodes())[static_cast<uint32_t>(i)];
    if (!node.is_sequential) {
      Set(knobs.mutable_parallelism(), node.parallelism, node.is_pinned);
    }
    if (node.read_depth > 0) {
      Set(knobs.mutable_read_depth(), node.read_depth, node.is_pinned);
    }
    if (node.reorder_rows > 0) {
      Set(knobs.mutable_reorder_rows(), node.reorder_rows, node.is_pinned);
    }
  }
  if (run_.output_rows) {
    Set(knobs_.mutable_output_rows(), *run_.output_rows, false);
  }
}

int64_t Simulator::Tasks(const plan::Knobs& knobs, size_t node) const {
  if (run_.nodes[node].is_sequential) return 1;
  const plan::NodeKnobs* own = KnobsOf(knobs, node);
  return own == nullptr ? 1 : std::max<int64_t>(1, own->parallelism().value());
}

double Simulator::LeftByCache(const plan::Knobs& knobs, size_t node) const {
  // Nodes are a chain.
  for (size_t i = node; i < run_.nodes.size(); ++i) {
    const plan::NodeKnobs* own = KnobsOf(knobs, i);
    if (own != nullptr && own->has_cache()) {
      return 1 - own->cache().fraction();
    }
  }
  return 1;
}

bool Simulator::IsCacheFull() const {
  return roots_when_cached_ >= 0 &&
         roots_ >= std::max(roots_when_cached_, run_.epoch_roots);
}

Simulator::Solved Simulator::Solve(const plan::Knobs& knobs,
                                   bool is_cached) const {
  if (run_.is_stuck) return {};
  const double cores = std::max(0.1, run_.cores - run_.others(seconds_));
  struct Cost {
    double cpu = 0, time = 0;  // of a root element, by a task alone
    double useful = 1;         // tasks
  };
  std::vector<Cost> costs(run_.nodes.size());
  double runnable = 0, extra = 0;
  double rate = 1e9;
  for (size_t i = 0; i < run_.nodes.size(); ++i) {
    const SimulatedNode& node = run_.nodes[i];
    const double work = node.visits * run_.factor(seconds_, node.name) *
                        (is_cached ? LeftByCache(knobs, i) : 1);
    const double p = static_cast<double>(Tasks(knobs, i));
    Cost& cost = costs[i];
    cost.cpu = work * node.cpu_seconds;
    cost.time = work * (node.cpu_seconds + node.wait_seconds);
    if (cost.time <= 0) continue;
    // More tasks than cores help only those that wait.
    cost.useful = std::max(1.0, std::min(p, cores * cost.time / cost.cpu));
    runnable += p * cost.cpu / cost.time;
    if (!node.is_sequential) extra += p;
    double done = cost.useful / (1 + kContention * (cost.useful - 1));
    const plan::NodeKnobs* set = KnobsOf(knobs, i);
    if (node.slow_share > 0 && p > 1 && set != nullptr &&
        set->has_reorder_rows()) {
      // A slow row holds up the others once the window is full.
      const double mean = node.cpu_seconds + node.wait_seconds;
      const double fast =
          mean / (1 - node.slow_share + node.slow_share * node.slow_factor);
      const auto rows = static_cast<double>(set->reorder_rows().value());
      const double stall =
          std::max(0.0, fast * node.slow_factor - rows * fast / p);
      done = mean / (mean / done + node.slow_share * stall);
    }
    rate = std::min(rate, done / cost.time);
    if (node.read_seconds > 0) {
      const auto depth = static_cast<double>(set->read_depth().value());
      rate = std::min(rate, depth / (work * node.read_seconds));
    }
  }
  // Threads that are too many cost a little each.
  Solved solved;
  solved.waste = 1 + 0.01 * std::max(0.0, extra - 2 * run_.cores);
  const auto cores_at = [&](double x) {
    double used = 0;
    for (const Cost& cost : costs) {
      const double active = std::min(x * cost.time, cost.useful);
      used += x * cost.cpu * solved.waste *
              (1 + kContention * std::max(0.0, active - 1));
    }
    return used;
  };
  if (cores_at(rate) > cores) {
    double low = 0, high = rate;
    for (int i = 0; i < 40; ++i) {
      const double middle = (low + high) / 2;
      (cores_at(middle) > cores ? high : low) = middle;
    }
    rate = low;
    solved.inflation = std::max(1.0, runnable / cores);
  }
  solved.slower.resize(costs.size());
  for (size_t i = 0; i < costs.size(); ++i) {
    const double active = std::min(rate * costs[i].time, costs[i].useful);
    solved.slower[i] =
        solved.waste * (1 + kContention * std::max(0.0, active - 1));
  }
  if (run_.consumer_seconds > 0) {
    const double ready = knobs.has_output_rows()
                             ? static_cast<double>(knobs.output_rows().value())
                             : 2;
    const double cv2 = run_.consumer_cv * run_.consumer_cv;
    if (ready < 1) {
      rate = 1 / (1 / rate + run_.consumer_seconds);
    } else {
      // Where the two are about as fast, variance is felt.
      const double consumer = 1 / run_.consumer_seconds;
      const double close = std::min(rate, consumer) / std::max(rate, consumer);
      rate = std::min(rate, consumer) *
             (1 - 0.5 * close * cv2 / (cv2 + 2 * ready * ready));
    }
  }
  solved.rate = rate;
  return solved;
}

double Simulator::RateOf(const plan::Knobs& knobs, bool is_cached) const {
  return Solve(knobs, is_cached).rate;
}

double Simulator::BestRate() const {
  plan::Knobs best = knobs_;
  // One knob after another, until none helps: rates are minima of what rises.
  for (int round = 0; round < 6; ++round) {
    for (size_t i = 0; i < run_.nodes.size(); ++i) {
      const SimulatedNode& node = run_.nodes[i];
      if (node.is_pinned) continue;
      const auto sweep = [&](auto set, bool is_there) {
        if (!is_there) return;
        plan::Knobs tried = best;
        for (int64_t value :
             {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64, 256, 1024, 4096}) {
          set((*tried.mutable_nodes())[static_cast<uint32_t>(i)], value);
          if (RateOf(tried, false) >= RateOf(best, false)) best = tried;
        }
      };
      sweep(
          [](plan::NodeKnobs& knobs, int64_t value) {
            knobs.mutable_parallelism()->set_value(
                std::min<int64_t>(value, 64));
          },
          !node.is_sequential);
      sweep(
          [](plan::NodeKnobs& knobs, int64_t value) {
            knobs.mutable_read_depth()->set_value(std::min<int64_t>(value, 64));
          },
          node.read_depth > 0);
      sweep(
          [](plan::NodeKnobs& knobs, int64_t value) {
            knobs.mutable_reorder_rows()->set_value(value);
          },
          node.reorder_rows > 0);
    }
    for (int64_t value : {0, 1, 2, 4, 8, 16, 32, 64}) {
      plan::Knobs tried = best;
      tried.mutable_output_rows()->set_value(value);
      if (RateOf(tried, false) >= RateOf(best, false)) best = tried;
    }
  }
  return RateOf(best, false);
}

plan::Snapshot Simulator::Run(double seconds) {
  bool has_cache = false;
  for (const auto& [id, knobs] : knobs_.nodes()) has_cache |= knobs.has_cache();
  if (!has_cache) roots_when_cached_ = -1;
  if (has_cache && roots_when_cached_ < 0) roots_when_cached_ = roots_;
  const bool is_cached = IsCacheFull();
  const Solved solved = Solve(knobs_, is_cached);
  const double noise =
      std::max(0.2, std::normal_distribution<double>(1, run_.noise)(random_));
  const double roots = solved.rate * noise * seconds;

  plan::Snapshot snapshot;
  snapshot.set_version(plan::kSnapshotVersion);
  snapshot.set_fingerprint("simulated");
  snapshot.set_run(run_.id);
  double cpu_of_all = 0;
  for (size_t i = 0; i < run_.nodes.size(); ++i) {
    const SimulatedNode& from = run_.nodes[i];
    Totals& totals = totals_[i];
    const plan::NodeKnobs* own = KnobsOf(knobs_, i);
    const double left = is_cached ? LeftByCache(knobs_, i) : 1;
    const double rows = roots * from.visits * left;
    const double slower =
        solved.rate > 0 ? run_.factor(seconds_, from.name) * solved.slower[i]
                        : 0;
    const double cpu = rows * from.cpu_seconds * slower;
    const double alone = cpu + rows * from.wait_seconds * slower;
    // A full cache still gives the rows of its node.
    totals.rows +=
        own != nullptr && own->has_cache() ? roots * from.visits : rows;
    totals.cpu += cpu;
    totals.reads += rows * from.read_seconds;
    totals.busy += std::max(
        alone, std::min(alone * solved.inflation,
                        static_cast<double>(Tasks(knobs_, i)) * seconds));
  }
  seconds_ += seconds;
  roots_ += roots;
  waited_ += std::max(0.0, seconds - run_.consumer_seconds * roots);
  snapshot.set_time_ns(Whole(seconds_ * kNanos));
  for (size_t i = 0; i < run_.nodes.size(); ++i) {
    const SimulatedNode& from = run_.nodes[i];
    const Totals& totals = totals_[i];
    plan::Snapshot::Node& node = *snapshot.add_nodes();
    node.set_node(static_cast<uint32_t>(i));
    node.set_op(from.op);
    node.set_name(from.name);
    if (i > 0) node.add_inputs(static_cast<uint32_t>(i - 1));
    if (from.cardinality) {
      node.mutable_cardinality()->set_finite(*from.cardinality);
    } else {
      node.mutable_cardinality()->set_unknown(true);
    }
    node.set_is_random(from.is_random);
    node.set_keeps_order(true);
    node.set_is_sequential(from.is_sequential);
    node.set_parallelism(static_cast<uint64_t>(Tasks(knobs_, i)));
    node.set_stage(static_cast<uint32_t>(i) + 1);
    node.set_rows(Whole(totals.rows));
    node.set_chunks(Whole(totals.rows / kRowsPerChunk));
    node.set_bytes(Whole(totals.rows * from.row_bytes));
    node.set_largest_row_bytes(Whole(from.row_bytes));
    node.set_self_ns(Whole(totals.busy * kNanos));
    node.set_cpu_ns(Whole(totals.cpu * kNanos));
    node.set_active_task_ns(totals.busy * kNanos);
    const plan::NodeKnobs* own = KnobsOf(knobs_, i);
    if (from.read_depth > 0) {
      node.set_read_depth(static_cast<uint64_t>(own->read_depth().value()));
      node.set_io_ops(Whole(totals.rows));
      node.set_io_bytes(Whole(totals.rows * from.row_bytes));
      node.set_io_ns(Whole(totals.reads * kNanos));
    }
    const double mean = (from.cpu_seconds + from.wait_seconds) * kNanos;
    const double fast =
        mean / (1 - from.slow_share + from.slow_share * from.slow_factor);
    Count(fast, totals.rows * (1 - from.slow_share),
          *node.mutable_service_ns());
    if (from.slow_share > 0) {
      Count(fast * from.slow_factor, totals.rows * from.slow_share,
            *node.mutable_service_ns());
    }
    Count(from.row_bytes, totals.rows, *node.mutable_row_bytes());
    if (own != nullptr && own->has_cache()) {
      node.mutable_cache()->set_is_complete(IsCacheFull());
    }
    cpu_of_all += totals.cpu;
  }
  snapshot.set_root(static_cast<uint32_t>(run_.nodes.size()) - 1);
  plan::Snapshot::Machine& machine = *snapshot.mutable_machine();
  machine.set_cores(run_.cores);
  machine.set_threads(static_cast<uint32_t>(run_.cores));
  machine.set_memory_limit_bytes(Whole(run_.memory_bytes));
  machine.set_handoff_ns(10'000);
  snapshot.mutable_process()->set_engine_cpu_ns(Whole(cpu_of_all * kNanos));
  snapshot.mutable_process()->set_unattributed_cpu_ns(0);
  snapshot.mutable_process()->set_resident_bytes(50'000'000);
  if (run_.consumer_seconds > 0) {
    plan::Snapshot::Consumer& consumer = *snapshot.mutable_consumer();
    const double gap = run_.consumer_seconds * kNanos;
    consumer.set_batches(Whole(roots_));
    consumer.set_gaps(Whole(roots_));
    consumer.set_gap_ns(gap * roots_);
    consumer.set_gap_ns_squared(
        gap * gap * (1 + run_.consumer_cv * run_.consumer_cv) * roots_);
    consumer.set_wait_ns(Whole(waited_ * kNanos));
  }
  *snapshot.mutable_knobs() = knobs_;
  return snapshot;
}

}  // namespace penstock::tuner
