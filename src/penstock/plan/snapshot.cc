#include "penstock/plan/snapshot.h"

#include <cmath>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/builder.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/print.h"

namespace penstock::plan {
namespace {

constexpr int kMaxBuckets = 65;
constexpr int kMaxEdges = 1'000'000;
constexpr size_t kMaxText = 4096;

absl::Status Bad(const Snapshot::Node& node, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("snapshot: node ", node.node(), " ", expected));
}

bool IsCount(double value) { return std::isfinite(value) && value >= 0; }

absl::Status CheckNumbers(const Snapshot::Node& node) {
  if (node.service_ns().counts_size() > kMaxBuckets ||
      node.row_bytes().counts_size() > kMaxBuckets) {
    return Bad(node, "must have histograms of at most 65 buckets");
  }
  if (!IsCount(node.active_task_ns()) || !IsCount(node.queue().row_ns()) ||
      !IsCount(node.files().opened_bytes()) ||
      !IsCount(node.files().opened_bytes_squared())) {
    return Bad(node, "must have finite, non-negative integrals");
  }
  if (node.name().size() > kMaxText) {
    return Bad(node, absl::StrCat("must have a name of at most ", kMaxText,
                                  " bytes; got ", node.name().size()));
  }
  return absl::OkStatus();
}

absl::Status CheckRun(const Snapshot& snapshot) {
  const Snapshot::Machine& machine = snapshot.machine();
  if (!IsCount(machine.cores()) || machine.cores() <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "snapshot: machine.cores must be over 0; got ", machine.cores()));
  }
  const Snapshot::Consumer& consumer = snapshot.consumer();
  for (double value :
       {machine.disk_bytes_per_second(), machine.disk_ops_per_second(),
        machine.handoff_ns(), consumer.gap_ns(), consumer.gap_ns_squared(),
        consumer.queue().row_ns()}) {
    if (!IsCount(value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "snapshot: numbers must be finite and not negative; got ", value));
    }
  }
  return absl::OkStatus();
}

// Circles, by taking away what has no inputs left.
absl::Status CheckOrder(const Snapshot& snapshot,
                        const absl::flat_hash_map<uint32_t, int>& index) {
  std::vector<std::vector<int>> users(snapshot.nodes_size());
  std::vector<int> open(snapshot.nodes_size(), 0);
  const auto depend = [&](int user, int input) {
    users[input].push_back(user);
    ++open[user];
  };
  int edges = 0;
  for (int i = 0; i < snapshot.nodes_size(); ++i) {
    const Snapshot::Node& node = snapshot.nodes(i);
    edges += node.inputs_size();
    if (edges > kMaxEdges) return Bad(node, "has too many inputs");
    for (uint32_t input : node.inputs()) {
      const auto at = index.find(input);
      if (at == index.end()) {
        return Bad(node, absl::StrCat("must have inputs among the nodes; got ",
                                      input));
      }
      depend(i, at->second);
    }
    if (node.has_inside()) {
      const auto at = index.find(node.inside());
      if (at == index.end()) {
        return Bad(node, absl::StrCat("must stand inside one of the nodes; "
                                      "got ",
                                      node.inside()));
      }
      depend(at->second, i);
    }
  }
  std::vector<int> ready;
  for (int i = 0; i < snapshot.nodes_size(); ++i) {
    if (open[i] == 0) ready.push_back(i);
  }
  int done = 0;
  while (!ready.empty()) {
    const int i = ready.back();
    ready.pop_back();
    ++done;
    for (int user : users[i]) {
      if (--open[user] == 0) ready.push_back(user);
    }
  }
  if (done == snapshot.nodes_size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "snapshot: inputs must not lead in a circle; found one");
}

// The difference of two totals. Remembers the first that fell.
class Difference final {
 public:
  // What is subtracted next: of whom, and which of its fields. Both live on.
  void Of(absl::string_view whom) { whom_ = whom; }
  Difference& Field(absl::string_view field) {
    field_ = field;
    return *this;
  }
  template <typename T>
  T operator()(T before, T after) {
    if (after >= before) return after - before;
    if (fallen_.empty()) {
      fallen_ = absl::StrCat(field_, " of ", whom_, " fell from ", before,
                             " to ", after);
    }
    return 0;
  }
  void operator()(const Histogram& before, Histogram& after) {
    if (after.counts_size() < before.counts_size()) {
      (*this)(before.counts_size(), after.counts_size());
    }
    const int both = std::min(before.counts_size(), after.counts_size());
    for (int i = 0; i < both; ++i) {
      after.set_counts(i, (*this)(before.counts(i), after.counts(i)));
    }
  }
  void operator()(const Queue& before, Queue& after) {
    after.set_row_ns((*this)(before.row_ns(), after.row_ns()));
    after.set_found_full((*this)(before.found_full(), after.found_full()));
    after.set_found_empty((*this)(before.found_empty(), after.found_empty()));
  }
  // Empty if none did.
  const std::string& fallen() const { return fallen_; }

 private:
  absl::string_view whom_;
  absl::string_view field_;
  std::string fallen_;
};

#define PENSTOCK_SUBTRACT(message, field) \
  message.set_##field(less.Field(#field)(before.field(), message.field()))

void Subtract(const Snapshot::Node& before, Snapshot::Node& node,
              Difference& less) {
  PENSTOCK_SUBTRACT(node, rows);
  PENSTOCK_SUBTRACT(node, chunks);
  PENSTOCK_SUBTRACT(node, bytes);
  PENSTOCK_SUBTRACT(node, errors);
  PENSTOCK_SUBTRACT(node, self_ns);
  if (node.has_cpu_ns()) PENSTOCK_SUBTRACT(node, cpu_ns);
  PENSTOCK_SUBTRACT(node, wait_input_ns);
  PENSTOCK_SUBTRACT(node, wait_room_ns);
  if (node.has_active_task_ns()) PENSTOCK_SUBTRACT(node, active_task_ns);
  PENSTOCK_SUBTRACT(node, python_ns);
  PENSTOCK_SUBTRACT(node, io_bytes);
  PENSTOCK_SUBTRACT(node, held_file_bytes);
  PENSTOCK_SUBTRACT(node, io_ops);
  PENSTOCK_SUBTRACT(node, io_ns);
  PENSTOCK_SUBTRACT(node, io_cpu_ns);
  less.Field("service_ns")(before.service_ns(), *node.mutable_service_ns());
  less.Field("row_bytes")(before.row_bytes(), *node.mutable_row_bytes());
  less.Field("queue");
  if (node.has_queue()) less(before.queue(), *node.mutable_queue());
  if (node.has_cache()) {
    CacheCounts& cache = *node.mutable_cache();
    less.Field("cache");
    cache.set_hits(less(before.cache().hits(), cache.hits()));
    cache.set_misses(less(before.cache().misses(), cache.misses()));
  }
  // Files stay totals: they are a sample of the data set, not of the window.
}

void Subtract(const Snapshot::Consumer& before, Snapshot::Consumer& consumer,
              Difference& less) {
  PENSTOCK_SUBTRACT(consumer, batches);
  PENSTOCK_SUBTRACT(consumer, wait_ns);
  PENSTOCK_SUBTRACT(consumer, gaps);
  PENSTOCK_SUBTRACT(consumer, gap_ns);
  PENSTOCK_SUBTRACT(consumer, gap_ns_squared);
  less.Field("queue");
  if (consumer.has_queue()) less(before.queue(), *consumer.mutable_queue());
}

void Subtract(const Snapshot::Process& before, Snapshot::Process& process,
              Difference& less) {
  PENSTOCK_SUBTRACT(process, engine_cpu_ns);
  PENSTOCK_SUBTRACT(process, python_cpu_ns);
  if (process.has_unattributed_cpu_ns()) {
    // An estimate (process less threads): it may fall by a little.
    process.set_unattributed_cpu_ns(
        process.unattributed_cpu_ns() -
        std::min(process.unattributed_cpu_ns(), before.unattributed_cpu_ns()));
  }
  if (process.has_machine_cpu_ns() && before.has_machine_cpu_ns()) {
    // The kernel's, which now and then takes a little back.
    process.set_machine_cpu_ns(
        process.machine_cpu_ns() -
        std::min(process.machine_cpu_ns(), before.machine_cpu_ns()));
  } else {
    process.clear_machine_cpu_ns();
  }
}

#undef PENSTOCK_SUBTRACT

bool IsSame(bool has_a, const Knob& a, bool has_b, const Knob& b) {
  return has_a == has_b && a.value() == b.value() &&
         a.chosen_by() == b.chosen_by();
}

// Written out: windows are cut many times a second, and reflection over a map
// takes longer than all else.
bool IsSame(const NodeKnobs& a, const NodeKnobs& b) {
  return IsSame(a.has_parallelism(), a.parallelism(), b.has_parallelism(),
                b.parallelism()) &&
         IsSame(a.has_reorder_rows(), a.reorder_rows(), b.has_reorder_rows(),
                b.reorder_rows()) &&
         IsSame(a.has_buffer_rows(), a.buffer_rows(), b.has_buffer_rows(),
                b.buffer_rows()) &&
         IsSame(a.has_read_depth(), a.read_depth(), b.has_read_depth(),
                b.read_depth()) &&
         IsSame(a.has_read_bytes(), a.read_bytes(), b.has_read_bytes(),
                b.read_bytes()) &&
         a.has_cache() == b.has_cache() &&
         a.cache().tier() == b.cache().tier() &&
         a.cache().fraction() == b.cache().fraction() &&
         a.cache().has_max_bytes() == b.cache().has_max_bytes() &&
         a.cache().max_bytes() == b.cache().max_bytes() &&
         a.cache().chosen_by() == b.cache().chosen_by();
}

absl::Status NoWindow(absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("no window between these snapshots: ", why));
}

}  // namespace

absl::Status ValidateSnapshot(const Snapshot& snapshot) {
  if (snapshot.version() != kSnapshotVersion) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot: version must be ",
                                                   kSnapshotVersion, "; got ",
                                                   snapshot.version()));
  }
  if (snapshot.nodes_size() > kMaxNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot: must have at most ", kMaxNodes, " nodes; got ",
                     snapshot.nodes_size()));
  }
  if (snapshot.knobs().nodes_size() > kMaxNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot: must have knobs of at most ", kMaxNodes,
                     " nodes; got ", snapshot.knobs().nodes_size()));
  }
  absl::flat_hash_map<uint32_t, int> index;
  for (int i = 0; i < snapshot.nodes_size(); ++i) {
    const Snapshot::Node& node = snapshot.nodes(i);
    if (!index.emplace(node.node(), i).second) {
      return Bad(node, "must be there once; found twice");
    }
    PENSTOCK_RETURN_IF_ERROR(CheckNumbers(node));
  }
  if (!index.contains(snapshot.root())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "snapshot: root must be one of the nodes; got ", snapshot.root()));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckRun(snapshot));
  return CheckOrder(snapshot, index);
}

bool SameKnobs(const Knobs& a, const Knobs& b) {
  if (a.nodes_size() != b.nodes_size() ||
      !IsSame(a.has_output_rows(), a.output_rows(), b.has_output_rows(),
              b.output_rows())) {
    return false;
  }
  for (const auto& [id, knobs] : a.nodes()) {
    const auto found = b.nodes().find(id);
    if (found == b.nodes().end() || !IsSame(knobs, found->second)) return false;
  }
  return true;
}

absl::StatusOr<Snapshot> WindowBetween(const Snapshot& before,
                                       const Snapshot& after) {
  if (before.fingerprint() != after.fingerprint() ||
      before.run() != after.run() || before.version() != after.version()) {
    return NoWindow("they are of two runs");
  }
  if (after.time_ns() <= before.time_ns()) {
    return NoWindow("the second must be later");
  }
  if (!SameKnobs(before.knobs(), after.knobs())) {
    return NoWindow("knobs changed in between; begin after the change");
  }
  if (before.nodes_size() != after.nodes_size()) {
    return NoWindow("they have other nodes");
  }
  Snapshot window = after;
  Difference less;
  window.set_time_ns(after.time_ns() - before.time_ns());
  for (int i = 0; i < window.nodes_size(); ++i) {
    if (before.nodes(i).node() != window.nodes(i).node()) {
      return NoWindow("they have other nodes");
    }
    less.Of(before.nodes(i).name());
    Subtract(before.nodes(i), *window.mutable_nodes(i), less);
  }
  less.Of("the consumer");
  Subtract(before.consumer(), *window.mutable_consumer(), less);
  less.Of("the process");
  Subtract(before.process(), *window.mutable_process(), less);
  if (!less.fallen().empty()) return NoWindow(less.fallen());
  return window;
}

void Describe(const Plan& plan, int node, Snapshot::Node& out) {
  const Node& from = plan.nodes(node);
  out.set_op(from.op_case());
  out.set_name(NodeName(plan, node));
  *out.mutable_made_at() = from.made_at();
  *out.mutable_cardinality() = from.cardinality();
  bool is_python = from.has_generator();
  bool keeps_order = true;
  bool is_pure = is_python;
  for (const Function* function : FunctionsOf(from)) {
    if (!IsPython(*function)) continue;
    is_pure = (is_pure || !is_python) && function->python().is_pure();
    is_python = true;
  }
  out.set_is_declared_pure(is_python && is_pure && !from.has_generator());
  if (from.has_map() && from.map().has_deterministic()) {
    keeps_order = from.map().deterministic();
  }
  if (from.has_interleave() && from.interleave().has_deterministic()) {
    keeps_order = from.interleave().deterministic();
  }
  if (from.has_batch() && from.batch().has_deterministic()) {
    keeps_order = from.batch().deterministic();
  }
  if (from.has_padded_batch()) out.mutable_padding();
  if (from.has_bucket_by_sequence_length() &&
      !from.bucket_by_sequence_length().no_padding()) {
    const BucketBySequenceLength& op = from.bucket_by_sequence_length();
    out.mutable_padding()->set_boundaries(
        static_cast<uint32_t>(op.boundaries_size()));
    if (op.has_max_tokens()) {
      out.mutable_padding()->set_max_tokens(
          static_cast<uint64_t>(op.max_tokens()));
    }
  }
  if (from.has_batch_by_tokens()) {
    out.mutable_padding()->set_max_tokens(
        static_cast<uint64_t>(from.batch_by_tokens().max_tokens()));
  }
  // What draws needs an instance, and so does a cache, which draws nothing.
  bool is_random = NeedsInstance(from) && !from.has_cache();
  // The same order or values in every epoch are no randomness to a cache.
  if (from.has_shuffle()) is_random = from.shuffle().reshuffle_each_iteration();
  if (from.has_list_files()) {
    is_random = from.list_files().shuffle() &&
                from.list_files().reshuffle_each_iteration();
  }
  if (from.has_random()) is_random = from.random().rerandomize_each_iteration();
  if (from.has_sample_from_datasets()) {
    is_random = from.sample_from_datasets().rerandomize_each_iteration();
  }
  out.set_is_python(is_python);
  out.set_is_random(is_random);
  out.set_keeps_order(keeps_order);
}

}  // namespace penstock::plan
