// The model: what one element at the root costs, node by node, and what there
// is to pay it with. Made by Measure() (demand.h), changed by Apply()
// (what_if.h), asked by FindBound() (bound.h). Plain values, no NaN; times are
// in seconds, sizes in bytes, all per root element unless a name says
// otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "penstock/snapshot.pb.h"
#include "penstock/tuner/disk.h"
#include "penstock/tuner/scaling.h"

namespace penstock::tuner {

// A value and its standard error.
struct Estimate {
  double value = 0;
  double error = 0;
};

inline void Scale(Estimate& estimate, double factor) {
  estimate.value *= factor;
  estimate.error *= factor;
}

// `low` and `high` are two standard errors away, and more where the model knows
// less.
struct Interval {
  double low = 0;
  double middle = 0;
  double high = 0;
};

// What the model keeps of a node as it was measured; shared by all changes.
struct Measured {
  uint32_t id = 0;
  plan::Node::OpCase op = plan::Node::OP_NOT_SET;
  std::string name;
  plan::Location made_at;
  plan::Cardinality cardinality;
  std::optional<plan::FileCounts> files;
  bool is_random = false;
  bool is_python = false;
  bool is_declared_pure = false;
  std::optional<std::string> why_not_kept;
  plan::Histogram service_ns;
  plan::NodeKnobs knobs;  // in force
  double rows = 0;        // over all windows
  double row_bytes = 0;   // mean
  double row_bytes_cv = 0;
  double largest_row_bytes = 0;
  double wait_input_share = 0;  // of the wall time, over its tasks
  double wait_room_share = 0;
  double active_tasks = 0;           // mean
  double mean_reads = 0;             // reads under way, mean
  std::optional<double> queue_rows;  // mean
  std::optional<double> found_empty_share;
  bool has_cache = false;
  bool is_cache_complete = false;
  double cached_rows = 0;  // of a cache that this run has filled
};

struct NodeModel {
  std::vector<int> inputs;  // places in Model::nodes, functions' datasets too
  int inside = -1;          // the place of the node whose function it is in
  std::optional<uint32_t> stage;
  double visits = 0;  // rows
  double chunks = 0;
  // Of a task: work of the node, alone, corrected for preemption and for the
  // other tasks of the node.
  Estimate busy;
  // Core-seconds, Python processes included, and of those:
  Estimate cpu;
  Estimate read_cpu;          // of threads that wait for storage
  double cores_per_task = 1;  // cpu / busy
  Estimate disk_bytes;
  Estimate file_bytes;  // as they lie in files, those that memory held too
  Estimate disk_ops;
  Estimate read_time;   // sum over reads, each as if it were alone
  Estimate kept_bytes;  // read back from rows that are kept on disk
  // Of a service's workers, for rows that are waited for; 0: none are.
  Estimate workers_time;
  Estimate network_bytes;  // from those workers
  double service_cv = 0;
  double tail = 1;  // 99th percentile of service time / mean
  Scaling scaling;
  int64_t parallelism = 1;
  int64_t max_parallelism = 1024;   // whatever it would gain
  int64_t read_depth = 0;           // of all sources; 0: not known
  int64_t read_sources = 1;         // open at once: the knob is of each
  int64_t reads_of_file = 1 << 20;  // there are no more of a source at once
  double read_bytes = 0;            // of one read; 0: there were none
  double reads_in_a_row = 1;        // of one source, before the disk seeks
  int64_t reorder_rows = 0;         // 0: not known, or order is not kept
  int64_t buffer_rows = 0;
  bool is_sequential = false;
  bool keeps_order = false;
  bool is_pinned = false;  // parallelism is the user's
  bool is_reorder_pinned = false;
  bool is_read_pinned = false;
  bool is_read_bytes_pinned = false;
  bool is_serialized = false;  // its tasks get no more done than one
  bool is_cached = false;      // below a cache that is full: costs nothing
  double handed_on = 0;        // share of its rows that are given as they lie
  bool hands_over = false;     // to another thread, a chunk at a time
};

struct Resources {
  double cores = 1;
  // For all that the engine holds: the limit less what others have and a tenth.
  // Unset: no limit is known.
  std::optional<double> memory_bytes;
  std::optional<double> disk_bytes_per_second;
  std::optional<double> disk_ops_per_second;
  // What was measured of it, where it was; then disk_bytes_per_second is not
  // used.
  std::optional<DiskLaw> disk;
  std::optional<double> disk_free_bytes;
  // Reading back rows that are kept on disk. Unset: as from any disk.
  std::optional<double> kept_bytes_per_second;
  // From a service's workers. Unset: no limit is known.
  std::optional<double> network_bytes_per_second;
  // Of copies in memory, by all cores together.
  std::optional<double> memory_bytes_per_second;
  // Core-seconds for a chunk that a thread is woken for, and for one that is
  // given to a task.
  double wake = 0;
  double task_handoff = 0;
  // Of the consumer alone, between two elements. Unset: it never waited for
  // itself, or was not measured.
  std::optional<Estimate> consumer_time;
  double consumer_cv = 0;
  std::optional<int64_t> output_rows;  // ready for the consumer, at most
  bool is_output_pinned = false;       // that is the user's
};

struct Model {
  std::vector<NodeModel> nodes;  // inputs before users; the root is last
  std::shared_ptr<const std::vector<Measured>> measured;             // by place
  std::shared_ptr<const absl::flat_hash_map<uint32_t, int>> places;  // by id
  Resources resources;
  Estimate unattributed;  // CPU that neither nodes nor hand-overs explain
  double cache_memory_bytes = 0;  // in memory that changes have added
  double cache_disk_bytes = 0;

  // As seen.
  Estimate rate;       // root elements a second
  double seconds = 0;  // of all windows
  double used_cores = 0;
  // Used by other processes, the trainer among them; 0 where nobody looked.
  double other_cores = 0;
  double consumer_wait = 0;                   // seconds per root element
  std::optional<double> consumer_wait_share;  // of its time
  double resident_bytes = 0;
};

// The place of the node with this id, or nothing.
std::optional<int> FindNode(const Model& model, uint32_t id);

}  // namespace penstock::tuner
