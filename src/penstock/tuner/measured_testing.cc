#include "penstock/tuner/measured_testing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "penstock/plan/snapshot.h"
#include "penstock/tuner/demand.h"

namespace penstock::tuner {
namespace {

constexpr double kNanos = 1e9;

uint64_t Whole(double value) {
  return static_cast<uint64_t>(std::llround(value));
}

void Count(double value, double times, plan::Histogram& histogram) {
  const int bucket =
      value < 1 ? 0 : 1 + static_cast<int>(std::floor(std::log2(value)));
  while (histogram.counts_size() <= bucket) histogram.add_counts(0);
  histogram.set_counts(bucket, histogram.counts(bucket) + Whole(times));
}

void FillNode(const TestRun& run, const TestNode& from, double roots,
              double seconds, plan::Snapshot::Node& node) {
  const double rows = from.visits * roots;
  const double cpu = rows * from.cpu_seconds;
  const double busy = cpu / from.cores_per_task * run.preemption;
  node.set_rows(Whole(rows));
  node.set_chunks(Whole(rows / from.rows_per_chunk));
  node.set_bytes(Whole(rows * from.row_bytes));
  node.set_largest_row_bytes(Whole(from.row_bytes));
  if (from.is_python) {
    const double inside = from.is_serialized
                              ? seconds * static_cast<double>(from.parallelism)
                              : busy;
    node.set_python_ns(Whole(inside * kNanos));
    node.set_cpu_ns(0);
    node.set_active_task_ns(inside * kNanos);
  } else {
    node.set_self_ns(Whole(busy * kNanos));
    node.set_cpu_ns(Whole(cpu * kNanos));
    node.set_active_task_ns(busy * kNanos);
  }
  node.set_io_bytes(Whole(rows * from.read_bytes));
  node.set_io_ops(from.read_bytes > 0 ? Whole(rows * from.reads_per_row) : 0);
  node.set_read_sources(static_cast<uint64_t>(from.read_sources));
  node.set_io_ns(Whole(rows * from.read_seconds * kNanos));
  if (from.read_depth > 0) node.set_read_depth(from.read_depth);
  node.set_wait_input_ns(Whole(from.wait_input_share * seconds * kNanos));
  const double slow = from.slow_share;
  const double fast_time = from.cpu_seconds / from.cores_per_task * kNanos /
                           (1 - slow + slow * from.slow_factor);
  Count(fast_time, rows * (1 - slow), *node.mutable_service_ns());
  if (slow > 0) {
    Count(fast_time * from.slow_factor, rows * slow,
          *node.mutable_service_ns());
  }
  Count(from.row_bytes, rows, *node.mutable_row_bytes());
  if (from.buffer_rows > 0) {
    node.mutable_queue()->set_capacity_rows(from.buffer_rows);
  }
}

void Describe(const TestNode& from, uint32_t id, plan::Snapshot::Node& node) {
  node.set_node(id);
  node.set_op(from.op);
  node.set_name(from.name);
  node.mutable_made_at()->set_file("train.py");
  node.mutable_made_at()->set_line(static_cast<int>(id) + 1);
  if (from.inputs) {
    for (uint32_t input : *from.inputs) node.add_inputs(input);
  } else if (id > 0) {
    node.add_inputs(id - 1);
  }
  if (from.inside) node.set_inside(*from.inside);
  if (from.stage) node.set_stage(*from.stage);
  if (from.cardinality) {
    node.mutable_cardinality()->set_finite(*from.cardinality);
  } else if (from.is_infinite) {
    node.mutable_cardinality()->set_infinite(true);
  } else {
    node.mutable_cardinality()->set_unknown(true);
  }
  node.set_is_random(from.is_random);
  node.set_is_python(from.is_python);
  node.set_is_declared_pure(from.is_declared_pure);
  node.set_keeps_order(from.keeps_order);
  node.set_is_sequential(from.is_sequential);
  node.set_parallelism(from.parallelism);
  if (from.files) *node.mutable_files() = *from.files;
  if (from.cache) *node.mutable_cache() = *from.cache;
}

void FillKnobs(const TestRun& run, plan::Knobs& knobs) {
  const auto set = [](int64_t value, plan::Chooser by, plan::Knob* knob) {
    knob->set_value(value);
    knob->set_chosen_by(by);
  };
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    const TestNode& from = run.nodes[i];
    plan::NodeKnobs& node = (*knobs.mutable_nodes())[static_cast<uint32_t>(i)];
    if (!from.is_sequential) {
      set(from.parallelism, from.chosen_by, node.mutable_parallelism());
    }
    if (from.reorder_rows > 0) {
      set(from.reorder_rows, from.chosen_by, node.mutable_reorder_rows());
    }
    if (from.buffer_rows > 0) {
      set(from.buffer_rows, from.chosen_by, node.mutable_buffer_rows());
    }
  }
  if (run.output_rows) {
    set(*run.output_rows, plan::TUNER, knobs.mutable_output_rows());
  }
}

plan::Snapshot SnapshotAt(const TestRun& run, double seconds, double roots) {
  plan::Snapshot snapshot;
  snapshot.set_version(plan::kSnapshotVersion);
  snapshot.set_fingerprint("test");
  snapshot.set_time_ns(Whole(seconds * kNanos));
  double cpu = 0, python = 0;
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    const TestNode& from = run.nodes[i];
    plan::Snapshot::Node& node = *snapshot.add_nodes();
    Describe(from, static_cast<uint32_t>(i), node);
    if (run.has_stages && !from.stage) {
      node.set_stage(1000 + static_cast<uint32_t>(i));
    }
    FillNode(run, from, roots, seconds, node);
    (from.is_python ? python : cpu) += from.visits * roots * from.cpu_seconds;
  }
  snapshot.set_root(static_cast<uint32_t>(run.nodes.size()) - 1);
  plan::Snapshot::Machine& machine = *snapshot.mutable_machine();
  machine.set_cores(run.cores);
  machine.set_threads(64);
  machine.set_memory_limit_bytes(Whole(run.memory_bytes));
  machine.set_handoff_ns(10'000);
  if (run.disk) {
    constexpr double kBytes = 256 << 10;
    machine.set_disk_read_bytes(kBytes);
    for (uint32_t reads : {1, 2, 4, 8, 16, 32}) {
      plan::Snapshot::DiskPoint* point = machine.add_disk_curve();
      point->set_reads(reads);
      point->set_bytes_per_second(
          BytesPerSecond(*run.disk, reads, kBytes, reads));
    }
  }
  if (run.kept_bytes_per_second) {
    machine.set_kept_bytes_per_second(*run.kept_bytes_per_second);
  }
  if (run.memory_bytes_per_second) {
    machine.set_memory_bytes_per_second(*run.memory_bytes_per_second);
  }
  if (run.disk_bytes_per_second) {
    machine.set_disk_bytes_per_second(*run.disk_bytes_per_second);
  }
  if (run.disk_free_bytes) {
    machine.set_disk_free_bytes(Whole(*run.disk_free_bytes));
  }
  plan::Snapshot::Process& process = *snapshot.mutable_process();
  process.set_engine_cpu_ns(
      Whole((cpu + run.unattributed_seconds * roots) * kNanos));
  process.set_unattributed_cpu_ns(
      Whole(run.unattributed_seconds * roots * kNanos));
  process.set_python_cpu_ns(Whole(python * kNanos));
  process.set_resident_bytes(Whole(run.resident_bytes));
  if (run.other_cores) {
    process.set_machine_cpu_ns(process.engine_cpu_ns() +
                               process.python_cpu_ns() +
                               Whole(*run.other_cores * seconds * kNanos));
  }
  plan::Snapshot::Consumer& consumer = *snapshot.mutable_consumer();
  if (run.consumer_seconds) {
    const double gap = *run.consumer_seconds * kNanos;
    const double wait = run.consumer_wait_share;
    consumer.set_batches(Whole(roots));
    consumer.set_gaps(Whole(roots));
    consumer.set_gap_ns(gap * roots);
    consumer.set_gap_ns_squared(
        gap * gap * (1 + run.consumer_cv * run.consumer_cv) * roots);
    consumer.set_wait_ns(Whole(gap * roots * wait / (1 - wait)));
  }
  FillKnobs(run, *snapshot.mutable_knobs());
  return snapshot;
}

}  // namespace

TestNode Source(double row_bytes, double visits) {
  TestNode node;
  node.name = "read";
  node.op = plan::Node::kReadFiles;
  node.row_bytes = row_bytes;
  node.visits = visits;
  node.cpu_seconds = 1e-6;
  node.is_sequential = true;
  node.inputs = std::vector<uint32_t>{};
  return node;
}

TestNode Map(const std::string& name, double cpu_seconds, double row_bytes,
             double visits) {
  TestNode node;
  node.name = name;
  node.cpu_seconds = cpu_seconds;
  node.row_bytes = row_bytes;
  node.visits = visits;
  return node;
}

TestNode Batch(int64_t size, double row_bytes) {
  TestNode node;
  node.name = "batch";
  node.op = plan::Node::kBatch;
  node.visits = 1;
  node.rows_per_chunk = 1;
  node.cpu_seconds = 1e-7 * static_cast<double>(size);
  node.row_bytes = row_bytes;
  node.is_sequential = true;
  return node;
}

std::vector<plan::Snapshot> SnapshotsOf(const TestRun& run) {
  std::vector<plan::Snapshot> snapshots;
  double seconds = 1;
  // Enough of them that whole numbers of rows are exact enough.
  const double step = 1e6 / run.rate;
  double roots = 1e6;
  snapshots.push_back(SnapshotAt(run, seconds * step, roots));
  for (int w = 0; w < run.windows; ++w) {
    seconds += 1;
    roots += 1e6 * (1 + (w % 2 == 0 ? run.noise : -run.noise));
    snapshots.push_back(SnapshotAt(run, seconds * step, roots));
  }
  return snapshots;
}

Model ModelOf(const TestRun& run) {
  absl::StatusOr<Model> model = Measure(SnapshotsOf(run));
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    std::abort();
  }
  return *std::move(model);
}

int PlaceOf(const Model& model, const std::string& name) {
  for (size_t i = 0; i < model.measured->size(); ++i) {
    if ((*model.measured)[i].name == name) return static_cast<int>(i);
  }
  std::fprintf(stderr, "no node %s\n", name.c_str());
  std::abort();
}

}  // namespace penstock::tuner
