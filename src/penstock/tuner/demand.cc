#include "penstock/tuner/demand.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/plan/snapshot.h"
#include "penstock/tuner/buffers.h"
#include "penstock/tuner/histogram.h"
#include "penstock/tuner/layout.h"

namespace penstock::tuner {
namespace {

using plan::Snapshot;

constexpr double kSecondsPerNano = 1e-9;
constexpr double kReserve = 0.1;  // of the memory limit
// From this share of the cores on, tasks are taken to wait for cores.
constexpr double kSaturated = 0.85;
// Of the wall time: rows of a service that are waited for less are there when
// they are asked for.
constexpr double kAwaited = 0.2;
// Reads at once that any disk can be kept busy with.
constexpr int64_t kManyReads = 16;
// Reads under way, of those that a disk can use: then it has no rest.
constexpr double kKeptBusy = 1.2;
// How far what was seen may be from what was measured of the disk alone.
constexpr double kMostWrong = 2;
// Reads of one file that a disk that seeks does before it goes to another.
constexpr double kMostInARow = 16;

// Sums over windows per root element, with the standard error of a ratio.
class Ratio final {
 public:
  explicit Ratio(std::vector<double> roots) : roots_(std::move(roots)) {
    for (double each : roots_) sum_ += each;
  }

  Estimate Of(const std::function<double(int window)>& value) const {
    const int windows = static_cast<int>(roots_.size());
    double total = 0;
    std::vector<double> values(windows);
    for (int w = 0; w < windows; ++w) total += values[w] = value(w);
    Estimate estimate;
    estimate.value = total / sum_;
    if (windows == 1) {
      estimate.error = kOneWindowError * estimate.value;
      return estimate;
    }
    double squares = 0;
    for (int w = 0; w < windows; ++w) {
      const double away = values[w] - estimate.value * roots_[w];
      squares += away * away;
    }
    estimate.error = std::sqrt(squares * windows / (windows - 1.0)) / sum_;
    return estimate;
  }

 private:
  std::vector<double> roots_;
  double sum_ = 0;
};

// More rows than anyone has are no number to reckon with.
int64_t RowsOf(const plan::Knob& knob) {
  return std::clamp<int64_t>(knob.value(), 0, int64_t{1} << 40);
}

double Seconds(double nanos) { return nanos * kSecondsPerNano; }

class Reader final {
 public:
  Reader(std::vector<Snapshot> windows, const MeasureOptions& options,
         std::vector<double> roots)
      : windows_(std::move(windows)),
        last_(windows_.back()),
        options_(options),
        layout_(LayOut(last_)),
        ratio_(std::move(roots)) {}

  Model Read() {
    model_.nodes.resize(last_.nodes_size());
    std::vector<Measured> measured(last_.nodes_size());
    ReadRun();
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      ReadNode(i, measured[i]);
    }
    FindStages();
    ChargeCpu();
    ShareCores(measured);
    for (size_t i = 0; i < model_.nodes.size(); ++i) Settle(i, measured[i]);
    InferDisk(measured);
    ReadDisk(measured);
    ForgetCached(measured);
    ReadUnattributed();
    absl::flat_hash_map<uint32_t, int> places;
    for (size_t i = 0; i < measured.size(); ++i) {
      places[measured[i].id] = static_cast<int>(i);
    }
    model_.places = std::make_shared<const absl::flat_hash_map<uint32_t, int>>(
        std::move(places));
    model_.measured =
        std::make_shared<const std::vector<Measured>>(std::move(measured));
    return std::move(model_);
  }

 private:
  const Snapshot::Node& At(int window, size_t place) const {
    return windows_[window].nodes(layout_.order[place]);
  }

  double Sum(const std::function<double(const Snapshot&)>& value) const {
    double sum = 0;
    for (const Snapshot& window : windows_) sum += value(window);
    return sum;
  }

  Estimate NodeRatio(
      size_t place,
      const std::function<double(const Snapshot::Node&)>& value) const {
    return ratio_.Of([&](int w) { return value(At(w, place)); });
  }

  void ReadRun() {
    const Snapshot::Machine& machine = last_.machine();
    Resources& out = model_.resources;
    out.cores = machine.cores();
    if (machine.memory_limit_bytes() > 0) {
      const double limit = static_cast<double>(machine.memory_limit_bytes());
      out.memory_bytes = std::max(
          0.0,
          limit * (1 - kReserve) -
              static_cast<double>(last_.process().others_resident_bytes()));
    }
    // A limit of nothing at all is one that was not measured.
    if (machine.disk_bytes_per_second() > 0) {
      out.disk_bytes_per_second = machine.disk_bytes_per_second();
    }
    if (machine.disk_ops_per_second() > 0) {
      out.disk_ops_per_second = machine.disk_ops_per_second();
    }
    std::vector<DiskPoint> points;
    for (const Snapshot::DiskPoint& each : machine.disk_curve()) {
      points.push_back(
          {static_cast<double>(each.reads()), each.bytes_per_second()});
    }
    out.disk = FitDisk(points, machine.disk_read_bytes());
    if (machine.kept_bytes_per_second() > 0) {
      out.kept_bytes_per_second = machine.kept_bytes_per_second();
    }
    if (machine.memory_bytes_per_second() > 0) {
      out.memory_bytes_per_second = machine.memory_bytes_per_second();
    }
    if (machine.has_disk_free_bytes()) {
      out.disk_free_bytes = static_cast<double>(machine.disk_free_bytes());
    }
    out.wake = machine.has_handoff_ns() ? Seconds(machine.handoff_ns())
                                        : kUsualHandoffSeconds;
    ReadConsumer();
    model_.seconds = Seconds(Sum(
        [](const Snapshot& w) { return static_cast<double>(w.time_ns()); }));
    const Estimate time = ratio_.Of([&](int w) {
      return Seconds(static_cast<double>(windows_[w].time_ns()));
    });
    model_.rate.value = 1 / time.value;
    model_.rate.error = time.error / (time.value * time.value);
    process_cpu_ = ratio_.Of([&](int w) {
      const Snapshot::Process& process = windows_[w].process();
      return Seconds(static_cast<double>(process.engine_cpu_ns()) +
                     static_cast<double>(process.python_cpu_ns()));
    });
    python_cpu_ = ratio_.Of([&](int w) {
      return Seconds(
          static_cast<double>(windows_[w].process().python_cpu_ns()));
    });
    model_.used_cores = process_cpu_.value * model_.rate.value;
    ReadOthers();
    model_.resident_bytes =
        static_cast<double>(last_.process().resident_bytes());
  }

  void ReadOthers() {
    double machine = 0;
    for (const Snapshot& window : windows_) {
      if (!window.process().has_machine_cpu_ns()) return;
      machine += static_cast<double>(window.process().machine_cpu_ns());
    }
    model_.other_cores =
        std::clamp(Seconds(machine) / model_.seconds - model_.used_cores, 0.0,
                   model_.resources.cores);
  }

  void ReadConsumer() {
    Resources& out = model_.resources;
    const double gaps = Sum([](const Snapshot& w) {
      return static_cast<double>(w.consumer().gaps());
    });
    const double gap =
        Sum([](const Snapshot& w) { return w.consumer().gap_ns(); });
    const double squares =
        Sum([](const Snapshot& w) { return w.consumer().gap_ns_squared(); });
    const double wait = Sum([](const Snapshot& w) {
      return static_cast<double>(w.consumer().wait_ns());
    });
    const double batches = Sum([](const Snapshot& w) {
      return static_cast<double>(w.consumer().batches());
    });
    if (gaps > 0 && gap > 0) {
      const double mean = gap / gaps;
      const double variance = std::max(0.0, squares / gaps - mean * mean);
      out.consumer_time =
          Estimate{Seconds(mean), Seconds(std::sqrt(variance / gaps))};
      out.consumer_cv = std::sqrt(variance) / mean;
    }
    if (wait + gap > 0 && batches > 0) {
      model_.consumer_wait_share = wait / (wait + gap);
      model_.consumer_wait = Seconds(wait / batches);
    }
    if (last_.knobs().has_output_rows()) {
      out.output_rows = RowsOf(last_.knobs().output_rows());
      out.is_output_pinned =
          last_.knobs().output_rows().chosen_by() == plan::USER;
    } else if (last_.consumer().has_queue()) {
      out.output_rows = static_cast<int64_t>(std::min<uint64_t>(
          last_.consumer().queue().capacity_rows(), int64_t{1} << 40));
    }
  }

  void ReadNode(size_t place, Measured& measured) {
    const Snapshot::Node& now =
        At(static_cast<int>(windows_.size()) - 1, place);
    NodeModel& node = model_.nodes[place];
    node.inputs = layout_.inputs[place];
    node.inside = layout_.inside[place];
    if (now.has_stage()) node.stage = now.stage();
    node.is_sequential = now.is_sequential();
    node.keeps_order = now.keeps_order();
    node.parallelism = std::clamp<int64_t>(
        static_cast<int64_t>(std::min<uint64_t>(now.parallelism(), 1 << 20)), 1,
        1 << 20);
    if (node.is_sequential) node.parallelism = 1;
    if (now.has_max_parallelism()) {
      node.max_parallelism =
          std::clamp<int64_t>(static_cast<int64_t>(std::min<uint64_t>(
                                  now.max_parallelism(), 1 << 20)),
                              1, node.max_parallelism);
      node.parallelism = std::min(node.parallelism, node.max_parallelism);
    }
    if (now.has_read_depth()) {
      node.read_depth =
          static_cast<int64_t>(std::min<uint64_t>(now.read_depth(), 1 << 20));
    }
    node.read_sources = std::clamp<int64_t>(
        static_cast<int64_t>(std::min<uint64_t>(now.read_sources(), 1 << 20)),
        1, 1 << 20);
    const auto found = options_.scalings.find(now.node());
    if (found != options_.scalings.end()) node.scaling = found->second;
    DescribeNode(now, place, measured);
    const plan::NodeKnobs& knobs = measured.knobs;
    node.is_pinned = knobs.parallelism().chosen_by() == plan::USER;
    node.is_reorder_pinned = knobs.reorder_rows().chosen_by() == plan::USER;
    node.is_read_pinned = knobs.read_depth().chosen_by() == plan::USER;
    node.is_read_bytes_pinned = knobs.read_bytes().chosen_by() == plan::USER;
    node.reorder_rows = RowsOf(knobs.reorder_rows());
    node.buffer_rows = knobs.has_buffer_rows()
                           ? RowsOf(knobs.buffer_rows())
                           : static_cast<int64_t>(std::min<uint64_t>(
                                 now.queue().capacity_rows(), 1ULL << 40));
    node.hands_over = node.buffer_rows > 0 || node.parallelism > 1;

    using Node = Snapshot::Node;
    const auto ratio = [&](auto field) {
      return NodeRatio(place, [&](const Node& each) {
        return static_cast<double>(field(each));
      });
    };
    const auto seconds = [&](auto field) {
      return NodeRatio(place, [&](const Node& each) {
        return Seconds(static_cast<double>(field(each)));
      });
    };
    node.visits = ratio([](const Node& n) { return n.rows(); }).value;
    node.chunks = ratio([](const Node& n) { return n.chunks(); }).value;
    node.busy = seconds([](const Node& n) {
      return static_cast<double>(n.self_ns()) +
             static_cast<double>(n.python_ns());
    });
    has_cpu_ &= now.has_cpu_ns();
    node.cpu = seconds([](const Node& n) {
      return n.has_cpu_ns() ? n.cpu_ns() : n.self_ns();
    });
    node.disk_bytes = ratio([](const Node& n) { return n.io_bytes(); });
    node.file_bytes =
        ratio([](const Node& n) { return n.io_bytes() + n.held_file_bytes(); });
    node.disk_ops = ratio([](const Node& n) { return n.io_ops(); });
    node.read_time = seconds([](const Node& n) { return n.io_ns(); });
    node.read_cpu = seconds([](const Node& n) { return n.io_cpu_ns(); });
    // Who waits for rows of others has them at the rate that was seen, whatever
    // its own work would allow.
    if (measured.op == plan::Node::kReceived &&
        measured.wait_input_share >= kAwaited) {
      const double time = 1 / model_.rate.value;
      node.workers_time = {time, model_.rate.error * time * time};
    }
    python_time_.push_back(
        seconds([](const Node& n) { return n.python_ns(); }).value);
    const Spread spread = SpreadOf(measured.service_ns);
    node.service_cv = spread.cv;
    if (spread.mean > 0) {
      node.tail =
          std::max(1.0, Quantile(measured.service_ns, 0.99) / spread.mean);
    }
  }

  void DescribeNode(const Snapshot::Node& now, size_t place, Measured& out) {
    out.id = now.node();
    // Numbers that are no operator's become none.
    out.op = plan::Node::descriptor()->FindFieldByNumber(
                 static_cast<int>(std::min<uint32_t>(now.op(), 1 << 20))) &&
                     now.op() >= plan::Node::kRange
                 ? static_cast<plan::Node::OpCase>(now.op())
                 : plan::Node::OP_NOT_SET;
    out.name = now.name();
    out.made_at = now.made_at();
    out.cardinality = now.cardinality();
    if (now.has_files()) out.files = now.files();
    out.is_random = now.is_random();
    out.is_python = now.is_python();
    out.is_declared_pure = now.is_declared_pure();
    if (now.has_why_not_kept()) out.why_not_kept = now.why_not_kept();
    const auto knobs = last_.knobs().nodes().find(now.node());
    if (knobs != last_.knobs().nodes().end()) out.knobs = knobs->second;
    out.has_cache = now.has_cache();
    out.is_cache_complete = now.cache().is_complete();
    out.cached_rows = static_cast<double>(now.cache().held_rows());
    out.largest_row_bytes = static_cast<double>(now.largest_row_bytes());
    double bytes = 0, wait_in = 0, wait_room = 0, reads = 0, active = 0;
    double empty = 0, queued = 0, chunks = 0;
    for (size_t w = 0; w < windows_.size(); ++w) {
      const Snapshot::Node& node = At(static_cast<int>(w), place);
      out.rows += static_cast<double>(node.rows());
      chunks += static_cast<double>(node.chunks());
      bytes += static_cast<double>(node.bytes());
      wait_in += static_cast<double>(node.wait_input_ns());
      wait_room += static_cast<double>(node.wait_room_ns());
      reads += static_cast<double>(node.io_ns());
      active += node.has_active_task_ns()
                    ? node.active_task_ns()
                    : static_cast<double>(node.self_ns()) +
                          static_cast<double>(node.python_ns());
      queued += node.queue().row_ns();
      empty += static_cast<double>(node.queue().found_empty());
      Add(node.service_ns(), out.service_ns);
    }
    const double wall = std::max(1.0, model_.seconds / kSecondsPerNano);
    if (out.rows > 0) out.row_bytes = bytes / out.rows;
    out.row_bytes_cv = SpreadOf(now.row_bytes()).cv;
    // While tasks of its own are at work it waits for those, not for its input.
    if (now.has_active_task_ns() || out.is_python) {
      wait_in = std::max(0.0, wait_in - std::min(active, wall));
    }
    out.wait_input_share = wait_in / wall;
    out.wait_room_share = wait_room / wall;
    out.mean_reads = reads / wall;
    out.active_tasks = active / wall;
    if (now.has_queue()) {
      out.queue_rows = queued / wall;
      if (chunks > 0) {
        out.found_empty_share = std::min(1.0, empty / std::max(chunks, empty));
      }
    }
  }

  static void Add(const plan::Histogram& from, plan::Histogram& to) {
    while (to.counts_size() < from.counts_size()) to.add_counts(0);
    for (int b = 0; b < from.counts_size(); ++b) {
      to.set_counts(b, to.counts(b) + from.counts(b));
    }
  }

  // Where the engine does not say who runs whom.
  void FindStages() {
    std::vector<bool> has_buffer;
    for (const NodeModel& node : model_.nodes) {
      if (node.stage) return;
      has_buffer.push_back(node.buffer_rows > 0);
    }
    const std::vector<uint32_t> pullers = PullersOf(layout_, has_buffer);
    for (size_t i = 0; i < pullers.size(); ++i) {
      model_.nodes[i].stage = pullers[i];
    }
  }

  // CPU of Python processes goes to the nodes by their time in them; of nodes
  // without a measure, what the process used is divided by their time.
  void ChargeCpu() {
    double python = 0, own = 0;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      python += python_time_[i];
      own += model_.nodes[i].cpu.value;
    }
    const double engine = std::max(0.0, process_cpu_.value - python_cpu_.value);
    const double scale =
        !has_cpu_ && own > engine && engine > 0 ? engine / own : 1;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      Estimate& cpu = model_.nodes[i].cpu;
      cpu.value *= scale;
      cpu.error *= scale;
      if (python > 0) {
        const double share = python_time_[i] / python;
        cpu.value += python_cpu_.value * share;
        cpu.error = std::hypot(cpu.error, python_cpu_.error * share);
      }
    }
  }

  // Time in which tasks wanted cores that others had is not work. Of Python
  // functions it is left out where it is measured: what they have beyond their
  // CPU they slept, or waited for somebody else.
  void ShareCores(std::vector<Measured>& measured) {
    double active = 0;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      const NodeModel& node = model_.nodes[i];
      const double wants =
          measured[i].is_python ? node.cpu.value : node.busy.value;
      active += wants * model_.rate.value;
    }
    const double all = model_.resources.cores;
    // What others leave.
    const double cores =
        std::max(std::min(model_.used_cores, all), all - model_.other_cores);
    const bool is_full =
        model_.used_cores + model_.other_cores >= kSaturated * all;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      NodeModel& node = model_.nodes[i];
      const double cores_used = node.cpu.value * model_.rate.value;
      if (is_full && active > cores && node.busy.value > 0 &&
          !measured[i].is_python) {
        const double shorter =
            std::max(node.busy.value * cores / active,
                     std::min(node.cpu.value, node.busy.value));
        node.busy.error *= shorter / node.busy.value;
        node.busy.value = shorter;
      } else if (measured[i].is_python && node.parallelism > 1 &&
                 measured[i].active_tasks >= 2 && cores >= 2 &&
                 cores_used > 0.8 && cores_used < 1.15) {
        // Many are at it, and one core's worth is done: a lock, as Python's.
        node.is_serialized = true;
        node.busy = node.cpu;
      }
    }
  }

  // Brings a node's costs to what one task alone would have.
  void Settle(size_t place, const Measured& measured) {
    NodeModel& node = model_.nodes[place];
    const double tasks =
        std::min(measured.active_tasks, static_cast<double>(node.parallelism));
    const double slower =
        node.is_serialized ? 1 : Slowdown(node.scaling, tasks);
    for (Estimate* each : {&node.busy, &node.cpu}) {
      each->value /= slower;
      each->error /= slower;
    }
    // Below the clock's grain, or without time: one core.
    node.cores_per_task =
        node.busy.value > 0 && node.cpu.value > 0
            ? std::clamp(node.cpu.value / node.busy.value, 1e-3, 1e3)
            : 1;
    // Not of its tasks.
    node.cpu.value += node.read_cpu.value;
    node.cpu.error = std::hypot(node.cpu.error, node.read_cpu.error);
  }

  // Many reads under way all the time, and nobody said how fast the disk is:
  // as fast as seen.
  void InferDisk(const std::vector<Measured>& measured) {
    if (model_.resources.disk_bytes_per_second || model_.resources.disk) {
      return;
    }
    double bytes = 0;
    bool is_full = false;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      const NodeModel& node = model_.nodes[i];
      bytes += node.disk_bytes.value;
      is_full |=
          node.read_depth >= kManyReads &&
          measured[i].mean_reads >= 0.9 * static_cast<double>(node.read_depth);
    }
    if (is_full && bytes > 0) {
      model_.resources.disk_bytes_per_second = bytes * model_.rate.value;
    }
  }

  // What reads would take alone, of those that waited for each other; and a
  // disk that was kept busy gives what it was seen to give.
  void ReadDisk(const std::vector<Measured>& measured) {
    Resources& resources = model_.resources;
    double time = 0, busiest = 0;
    for (NodeModel& node : model_.nodes) {
      if (node.disk_ops.value > 0) {
        node.read_bytes = node.disk_bytes.value / node.disk_ops.value;
        FindReadsOfFile(measured[&node - model_.nodes.data()].files, node);
      }
      if (!resources.disk || node.read_bytes <= 0) continue;
      const DiskLaw& disk = *resources.disk;
      const auto sources = static_cast<double>(node.read_sources);
      const double reads = node.read_time.value * model_.rate.value;
      const double knee = KneeOf(disk, node.read_bytes, sources);
      busiest = std::max(busiest, reads / knee);
      if (reads > knee) {
        FindRuns(disk, node);
        node.read_time.value *= knee / reads;
        node.read_time.error *= knee / reads;
      }
      time += node.disk_bytes.value /
              MostBytesPerSecond(disk, node.read_bytes * node.reads_in_a_row,
                                 sources);
    }
    if (busiest < kKeptBusy || time <= 0) return;
    const double factor =
        std::clamp(model_.rate.value * time, 1 / kMostWrong, kMostWrong);
    resources.disk->peak *= factor;
    resources.disk->seek /= factor;
  }

  // A small file has few reads that could be under way.
  static void FindReadsOfFile(const std::optional<plan::FileCounts>& files,
                              NodeModel& node) {
    if (!files || files->opened() == 0 || !(files->opened_bytes() > 0) ||
        !(node.read_bytes > 0)) {
      return;
    }
    const double reads = files->opened_bytes() /
                         static_cast<double>(files->opened()) / node.read_bytes;
    node.reads_of_file = static_cast<int64_t>(
        std::clamp(std::ceil(reads - 0.2), 1.0, double{1 << 20}));
    node.read_depth =
        std::min(node.read_depth, node.read_sources * node.reads_of_file);
  }

  // How many reads of a file the disk did one after another, where it seeks.
  void FindRuns(const DiskLaw& disk, NodeModel& node) const {
    if (disk.seek <= 0 || node.read_sources <= 1) return;
    const double seen = node.disk_bytes.value * model_.rate.value;
    if (seen <= 0 || seen >= disk.peak) return;
    const double run = disk.seek / (1 / seen - 1 / disk.peak);
    node.reads_in_a_row = std::clamp(run / node.read_bytes, 1.0, kMostInARow);
  }

  void ForgetCached(const std::vector<Measured>& measured) {
    std::vector<bool> is_run(model_.nodes.size(), false);
    is_run.back() = true;
    for (size_t i = model_.nodes.size(); i-- > 0;) {
      NodeModel& node = model_.nodes[i];
      if (is_run[i]) {
        for (int input : node.inputs) {
          // What reads a cache's file is inside it, and run for each pass.
          const bool is_inside =
              model_.nodes[input].inside == static_cast<int>(i);
          is_run[input] =
              is_run[input] || is_inside || !measured[i].is_cache_complete;
        }
        continue;
      }
      node.is_cached = true;
      node.busy = node.cpu = Estimate{};
      node.disk_bytes = node.disk_ops = node.read_time = Estimate{};
      node.workers_time = Estimate{};
      node.chunks = 0;
    }
  }

  void ReadUnattributed() {
    Estimate rest = ratio_.Of([&](int w) {
      const Snapshot::Process& process = windows_[w].process();
      if (process.has_unattributed_cpu_ns()) {
        return Seconds(static_cast<double>(process.unattributed_cpu_ns()));
      }
      if (!has_cpu_) return 0.0;
      double known = 0;
      for (const Snapshot::Node& node : windows_[w].nodes()) {
        known += static_cast<double>(node.cpu_ns() + node.io_cpu_ns());
      }
      return Seconds(
          std::max(0.0, static_cast<double>(process.engine_cpu_ns()) - known));
    });
    FindHandOffs(rest.value);
    const double known = HandOverCpu(model_);
    model_.unattributed = {std::max(0.0, rest.value - known), rest.error};
  }

  // What was seen in all limits what hand-overs can have cost. A chunk for a
  // task is taken to cost less than a wake, unless there are no others.
  void FindHandOffs(double seen) {
    Resources& out = model_.resources;
    const double usual = out.wake;
    out.task_handoff = usual * kWakesForTask;
    if (!has_cpu_ || process_cpu_.value <= 0) return;
    double wakes = 0;
    double tasks = 0;
    for (const NodeModel& node : model_.nodes) {
      (node.buffer_rows > 0 ? wakes : tasks) += ChunksHandedOver(node);
    }
    if (wakes > 0) {
      out.wake = std::min(usual, seen / (wakes + kWakesForTask * tasks));
      out.task_handoff = out.wake * kWakesForTask;
    } else if (tasks > 0) {
      out.task_handoff = std::min(usual, seen / tasks);
      out.wake = std::min(usual, out.task_handoff / kWakesForTask);
    }
  }

  const std::vector<Snapshot> windows_;
  const Snapshot& last_;
  const MeasureOptions& options_;
  const Layout layout_;
  const Ratio ratio_;
  Model model_;
  Estimate process_cpu_;
  Estimate python_cpu_;
  std::vector<double> python_time_;
  bool has_cpu_ = true;
};

}  // namespace

std::optional<int> FindNode(const Model& model, uint32_t id) {
  const auto found = model.places->find(id);
  if (found == model.places->end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<Model> Measure(absl::Span<const Snapshot> snapshots,
                              const MeasureOptions& options) {
  if (snapshots.empty()) {
    return absl::InvalidArgumentError(
        "the tuner must have at least one snapshot; got none");
  }
  for (const Snapshot& snapshot : snapshots) {
    PENSTOCK_RETURN_IF_ERROR(plan::ValidateSnapshot(snapshot));
  }
  std::vector<Snapshot> windows;
  if (snapshots.size() == 1) windows.push_back(snapshots[0]);
  for (size_t i = 1; i < snapshots.size(); ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(
        Snapshot window, plan::WindowBetween(snapshots[i - 1], snapshots[i]));
    windows.push_back(std::move(window));
  }
  std::vector<double> roots;
  double sum = 0;
  for (const Snapshot& window : windows) {
    double rows = 0;
    for (const Snapshot::Node& node : window.nodes()) {
      if (node.node() == window.root()) {
        rows = static_cast<double>(node.rows());
      }
    }
    roots.push_back(rows);
    sum += rows;
    if (window.time_ns() == 0) {
      return absl::FailedPreconditionError(
          "no time has passed in this window; measure longer");
    }
  }
  if (sum <= 0) {
    return absl::FailedPreconditionError(
        "nothing came out of the pipeline in this window; measure longer");
  }
  return Reader(std::move(windows), options, std::move(roots)).Read();
}

}  // namespace penstock::tuner
