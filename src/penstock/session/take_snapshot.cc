#include "penstock/session/take_snapshot.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "penstock/base/clock.h"
#include "penstock/engine/knobs.h"
#include "penstock/io/byte_stream.h"
#include "penstock/plan/snapshot.h"

namespace penstock::session {
namespace {

uint64_t Nanos(const std::atomic<uint64_t>& ticks) {
  return static_cast<uint64_t>(
      static_cast<double>(ticks.load(std::memory_order_relaxed)) *
      NanosPerTick());
}

void Fill(const engine::Histogram& from, plan::Histogram& to) {
  int used = 0;
  for (int i = 0; i < engine::Histogram::kBuckets; ++i) {
    if (from.rows[i].load(std::memory_order_relaxed) > 0) used = i + 1;
  }
  for (int i = 0; i < used; ++i) {
    to.add_counts(from.rows[i].load(std::memory_order_relaxed));
  }
}

// Rows that a node gives in an epoch, where that is known; of the nodes that
// give as many as their input does, the input's.
std::optional<uint64_t> TotalRows(const engine::Pipeline& pipeline,
                                  const engine::Run& run, int id) {
  while (true) {
    const engine::OpInfo& info = pipeline.ops()[id];
    if (info.described.cardinality().has_finite()) {
      return info.described.cardinality().finite();
    }
    switch (static_cast<plan::Node::OpCase>(info.described.op())) {
      case plan::Node::kListFiles: {
        const uint64_t total = run.stats[id].total;
        return total > 0 ? std::optional(total) : std::nullopt;
      }
      case plan::Node::kMap:
      case plan::Node::kShuffle:
      case plan::Node::kPrefetch:
      case plan::Node::kCache:
      case plan::Node::kEnumerate:
      case plan::Node::kAssertCardinality:
        id = info.inputs[0];
        continue;
      default:
        return std::nullopt;
    }
  }
}

// Files that a node reads in an epoch: those it was given, as often as it is
// run for a row of the node whose function it is in.
std::optional<uint64_t> TotalFiles(const engine::Pipeline& pipeline,
                                   const engine::Run& run,
                                   const engine::OpInfo& info) {
  uint64_t total = run.stats[info.id].total;
  if (total == 0) return std::nullopt;
  const plan::Snapshot::Node* node = &info.described;
  while (node->has_inside()) {
    const engine::OpInfo& outer = pipeline.ops()[node->inside()];
    if (outer.inputs.empty()) return std::nullopt;
    const std::optional<uint64_t> rows =
        TotalRows(pipeline, run, outer.inputs[0]);
    if (!rows.has_value()) return std::nullopt;
    total *= *rows;
    node = &outer.described;
  }
  return total;
}

void FillFiles(const engine::Pipeline& pipeline, const engine::Run& run,
               const engine::OpInfo& info, plan::Snapshot::Node& out) {
  const io::IoStats& io = *run.stats[info.id].io;
  out.set_held_file_bytes(io.cached_bytes);
  out.set_io_bytes(io.bytes);
  out.set_io_ops(io.reads);
  out.set_io_ns(io.nanos);
  out.set_io_cpu_ns(io.cpu_nanos);
  const int64_t sources = std::max<int64_t>(1, io.most_sources);
  const int64_t reads =
      engine::KnobOr(run.knobs[info.id].read_depth,
                     static_cast<int64_t>(io::ByteStreamOptions().read_ahead));
  out.set_read_sources(static_cast<uint64_t>(sources));
  out.set_read_depth(static_cast<uint64_t>(
      std::min<int64_t>(kMaxReadThreads, sources * reads)));
  if (io.files == 0) return;
  plan::FileCounts* files = out.mutable_files();
  files->set_opened(io.files);
  files->set_opened_bytes(io.file_bytes);
  files->set_opened_bytes_squared(io.file_bytes_squared);
  if (const auto total = TotalFiles(pipeline, run, info)) {
    files->set_total(*total);
  }
}

void FillNode(const engine::NodeStats& from, plan::Snapshot::Node& out) {
  out.set_parallelism(from.parallelism);
  out.set_rows(from.rows);
  out.set_chunks(from.chunks);
  out.set_bytes(from.bytes);
  out.set_errors(from.errors);
  out.set_largest_row_bytes(from.largest_row);
  out.set_self_ns(Nanos(from.self_ticks));
  out.set_cpu_ns(Nanos(from.cpu_ticks));
  out.set_wait_input_ns(Nanos(from.wait_in_ticks));
  out.set_wait_room_ns(Nanos(from.wait_out_ticks));
  if (from.tasks > 0) {
    out.set_active_task_ns(static_cast<double>(Nanos(from.task_ticks)));
  }
  out.set_python_ns(from.python_nanos);
  Fill(from.nanos_per_row, *out.mutable_service_ns());
  Fill(from.bytes_per_row, *out.mutable_row_bytes());
}

// What the plan says of it is there already.
void FillPadding(const engine::PaddingStats& from, plan::PaddingCounts& out) {
  const engine::PaddingStats::Counts counts = from.Get();
  out.set_batches(counts.batches);
  out.set_items(counts.items);
  out.set_padded_items(counts.padded_items);
  out.set_shapes(counts.shapes);
  for (const auto& [length, rows] : counts.lengths) {
    plan::PaddingCounts::Length* to = out.add_lengths();
    to->set_length(static_cast<uint64_t>(length));
    to->set_rows(rows);
  }
}

void FillQueue(const engine::QueueStats& from, plan::Queue& queue) {
  queue.set_capacity_rows(from.capacity);
  queue.set_row_ns(static_cast<double>(Nanos(from.row_ticks)));
  queue.set_found_full(from.was_full);
  queue.set_found_empty(from.was_empty);
}

uint64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t size = 0;
  uint64_t resident = 0;
  file >> size >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

plan::Snapshot TakeSnapshot(const FrameSender& sender,
                            const Surroundings& around) {
  const engine::Pipeline& pipeline = *sender.pipeline();
  const engine::Run& run = sender.run();
  plan::Snapshot snapshot;
  snapshot.set_version(plan::kSnapshotVersion);
  snapshot.set_fingerprint(pipeline.fingerprint());
  snapshot.set_run(around.run);
  snapshot.set_time_ns(static_cast<uint64_t>(around.time_ns));
  snapshot.set_root(static_cast<uint32_t>(pipeline.root_info().id));
  *snapshot.mutable_knobs() = engine::KnobsInForce(run);
  uint64_t charged = 0;
  for (const engine::OpInfo& info : pipeline.ops()) {
    const engine::NodeStats& stats = run.stats[info.id];
    plan::Snapshot::Node* node = snapshot.add_nodes();
    *node = info.described;
    FillNode(stats, *node);
    charged += node->cpu_ns() + stats.io->cpu_nanos;
    node->set_why_not_kept(pipeline.WhyNotKept(info.id));
    if (const engine::KeptCounts& kept = run.kept[info.id];
        kept.held_bytes > 0 || kept.hits > 0) {
      plan::CacheCounts* cache = node->mutable_cache();
      cache->set_hits(kept.hits);
      cache->set_misses(kept.misses);
      cache->set_held_bytes(
          static_cast<uint64_t>(std::max<int64_t>(0, kept.held_bytes)));
      cache->set_is_complete(kept.is_complete);
    }
    if (stats.is_inline && stats.parallelism > 1) {
      node->set_parallelism(1);  // chunks are not worth handing over
      node->set_max_parallelism(1);
    } else if (node->is_python() && !node->is_sequential()) {
      node->set_max_parallelism(static_cast<uint64_t>(around.python_processes));
    }
    if (info.described.op() == plan::Node::kReadFiles) {
      FillFiles(pipeline, run, info, *node);
    }
    if (info.described.has_padding()) {
      FillPadding(stats.padding, *node->mutable_padding());
    }
    if (info.described.op() == plan::Node::kPrefetch) {
      FillQueue(stats.queue, *node->mutable_queue());
    }
    if (info.described.op() == plan::Node::kCache) {
      plan::CacheCounts* cache = node->mutable_cache();
      cache->set_hits(stats.cache_hits);
      cache->set_misses(stats.cache_misses);
      cache->set_held_bytes(stats.cache_bytes);
      cache->set_held_rows(stats.cache_misses);
      cache->set_is_complete(stats.cache_hits > 0);
    }
  }
  const ConsumerCounts counts = sender.consumer();
  plan::Snapshot::Consumer* consumer = snapshot.mutable_consumer();
  consumer->set_batches(counts.rows);
  consumer->set_wait_ns(static_cast<uint64_t>(counts.wait_ns));
  consumer->set_gaps(counts.gaps);
  consumer->set_gap_ns(counts.gap_ns);
  consumer->set_gap_ns_squared(counts.gap_ns_squared);
  plan::Snapshot::Machine* machine = snapshot.mutable_machine();
  machine->set_cores(around.cores);
  machine->set_threads(static_cast<uint32_t>(around.threads));
  machine->set_memory_limit_bytes(
      static_cast<uint64_t>(around.memory_limit_bytes));
  plan::Snapshot::Process* process = snapshot.mutable_process();
  const auto engine_cpu = static_cast<uint64_t>(around.engine_cpu_ns);
  process->set_engine_cpu_ns(engine_cpu);
  process->set_python_cpu_ns(static_cast<uint64_t>(around.python_cpu_ns));
  process->set_unattributed_cpu_ns(engine_cpu - std::min(engine_cpu, charged));
  process->set_resident_bytes(ResidentBytes());
  if (around.machine_cpu_ns.has_value()) {
    process->set_machine_cpu_ns(static_cast<uint64_t>(*around.machine_cpu_ns));
  }
  return snapshot;
}

}  // namespace penstock::session
