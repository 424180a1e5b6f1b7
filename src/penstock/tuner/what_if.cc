#include "penstock/tuner/what_if.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/tuner/move.h"
#include "penstock/tuner/offload.h"

namespace penstock::tuner {
namespace {

// What reading rows from a cache costs one core. Those on disk are copied and
// checked; those in memory are handed on as they lie.
constexpr double kDiskCacheBytesPerSecond = 4e9;
constexpr double kMemoryCacheBytesPerSecond = 200e9;
// What one core copies where nobody measured memory, and its share of what all
// do together where somebody did.
constexpr double kUsualCopyBytesPerSecond = 12e9;
constexpr double kShareOfOneCore = 0.5;
constexpr double kCopyError = 0.3;

void ScaleAll(NodeModel& node, double factor) {
  for (Estimate* each :
       {&node.busy, &node.cpu, &node.read_cpu, &node.disk_bytes, &node.disk_ops,
        &node.read_time, &node.kept_bytes, &node.workers_time,
        &node.network_bytes}) {
    Scale(*each, factor);
  }
  node.chunks *= factor;
}

Estimate Sum(const Estimate& a, const Estimate& b) {
  return {a.value + b.value, std::hypot(a.error, b.error)};
}

absl::Status Positive(absl::string_view what, double value) {
  if (std::isfinite(value) && value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("what if: ", what, " must be over 0; got ", value));
}

class Changer final {
 public:
  explicit Changer(Model& model) : model_(model) {}

  absl::Status operator()(const SetCores& change) {
    PENSTOCK_RETURN_IF_ERROR(Positive("cores", change.cores));
    model_.resources.cores = change.cores;
    return absl::OkStatus();
  }

  absl::Status operator()(const SetTasks& change) {
    PENSTOCK_ASSIGN_OR_RETURN(NodeModel * node, Find(change.node));
    PENSTOCK_RETURN_IF_ERROR(
        Positive("tasks", static_cast<double>(change.tasks)));
    if (node->is_sequential && change.tasks != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("what if: node ", change.node,
                       " is sequential and has one task; got ", change.tasks));
    }
    node->parallelism = std::min(change.tasks, node->max_parallelism);
    node->is_pinned = true;
    node->hands_over = node->parallelism > 1 || node->buffer_rows > 0;
    return absl::OkStatus();
  }

  absl::Status operator()(const SetReadDepth& change) {
    PENSTOCK_ASSIGN_OR_RETURN(NodeModel * node, Find(change.node));
    PENSTOCK_RETURN_IF_ERROR(
        Positive("reads", static_cast<double>(change.reads)));
    node->is_read_pinned = true;
    const int64_t reads = std::min(change.reads, node->reads_of_file);
    node->read_depth =
        std::min(reads * node->read_sources, std::max(reads, kMaxReadDepth));
    node->reads_in_a_row =
        std::min(node->reads_in_a_row, static_cast<double>(reads));
    return absl::OkStatus();
  }

  absl::Status operator()(const SetReadBytes& change) {
    PENSTOCK_ASSIGN_OR_RETURN(NodeModel * node, Find(change.node));
    PENSTOCK_RETURN_IF_ERROR(
        Positive("read bytes", static_cast<double>(change.bytes)));
    node->is_read_bytes_pinned = true;
    if (node->read_bytes <= 0) return absl::OkStatus();
    const auto bytes = static_cast<double>(change.bytes);
    const double fewer = node->read_bytes / bytes;
    Scale(node->disk_ops, fewer);
    if (const std::optional<DiskLaw>& disk = model_.resources.disk) {
      Scale(node->read_time,
            fewer * ReadTime(*disk, bytes) / ReadTime(*disk, node->read_bytes));
    }
    node->read_bytes = bytes;
    return absl::OkStatus();
  }

  absl::Status operator()(const SetReorderRows& change) {
    PENSTOCK_ASSIGN_OR_RETURN(NodeModel * node, Find(change.node));
    PENSTOCK_RETURN_IF_ERROR(
        Positive("reorder rows", static_cast<double>(change.rows)));
    node->reorder_rows = change.rows;
    node->is_reorder_pinned = true;
    return absl::OkStatus();
  }

  absl::Status operator()(const SetBufferRows& change) {
    PENSTOCK_ASSIGN_OR_RETURN(NodeModel * node, Find(change.node));
    node->buffer_rows = std::max<int64_t>(0, change.rows);
    node->hands_over = node->parallelism > 1 || node->buffer_rows > 0;
    return absl::OkStatus();
  }

  absl::Status operator()(const SetOutputRows& change) {
    model_.resources.output_rows = std::max<int64_t>(0, change.rows);
    return absl::OkStatus();
  }

  absl::Status operator()(const ScaleDisk& change) {
    PENSTOCK_RETURN_IF_ERROR(Positive("disk factor", change.factor));
    Resources& resources = model_.resources;
    if (resources.disk_bytes_per_second) {
      *resources.disk_bytes_per_second *= change.factor;
    }
    if (resources.disk_ops_per_second) {
      *resources.disk_ops_per_second *= change.factor;
    }
    if (resources.disk) {
      resources.disk->peak *= change.factor;
      resources.disk->latency /= change.factor;
      resources.disk->seek /= change.factor;
    }
    // A faster disk also answers sooner, where its speed is what takes time.
    for (NodeModel& node : model_.nodes) {
      if (resources.disk || resources.disk_bytes_per_second ||
          resources.disk_ops_per_second) {
        Scale(node.read_time, 1 / change.factor);
      }
    }
    return absl::OkStatus();
  }

  absl::Status operator()(const ScaleCost& change) {
    PENSTOCK_ASSIGN_OR_RETURN(NodeModel * node, Find(change.node));
    PENSTOCK_RETURN_IF_ERROR(Positive("cost factor", change.factor));
    Scale(node->busy, change.factor);
    Scale(node->cpu, change.factor);
    return absl::OkStatus();
  }

  absl::Status operator()(const CacheAfter& change) {
    PENSTOCK_ASSIGN_OR_RETURN(NodeModel * node, Find(change.node));
    if (!(change.fraction > 0) || !(change.fraction <= 1) ||
        !std::isfinite(change.size_bytes) || change.size_bytes < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "what if: a cache must have a fraction in (0, 1] and a size; got ",
          change.fraction, " of ", change.size_bytes, " bytes"));
    }
    const int place = static_cast<int>(node - model_.nodes.data());
    const double left = 1 - change.fraction;
    const double before = AllCpu();
    for (int below : OnlyBelow(model_, place)) {
      ScaleAll(model_.nodes[below], left);
      model_.nodes[below].visits *= left;
      if (left == 0) model_.nodes[below].is_cached = true;
    }
    const double chunks = node->chunks;
    ScaleAll(*node, left);
    node->chunks = chunks;
    // What no node was charged with (memory, waiting for storage) goes with the
    // work that it was for.
    if (before > 0) Scale(model_.unattributed, AllCpu() / before);
    const double bytes =
        change.fraction * node->visits * (*model_.measured)[place].row_bytes;
    const double reading =
        bytes / (change.tier == plan::DISK ? kDiskCacheBytesPerSecond
                                           : kMemoryCacheBytesPerSecond);
    node->busy = Sum(node->busy, {reading, 0.5 * reading});
    node->cpu = Sum(node->cpu, {reading, 0.5 * reading});
    if (change.tier == plan::DISK) {
      // From another disk than the files', where that is known.
      Estimate& read = model_.resources.kept_bytes_per_second
                           ? node->kept_bytes
                           : node->disk_bytes;
      read.value += bytes;
      model_.cache_disk_bytes += change.fraction * change.size_bytes;
    } else {
      node->handed_on = change.fraction;
      CopyIntoBatch(place, change.fraction);
      model_.cache_memory_bytes += change.fraction * change.size_bytes;
    }
    if (left == 0) {
      // Who reads a full cache computes nothing that could hold others up, or
      // that several could share.
      node->reorder_rows = 0;
      node->is_serialized = false;
      node->max_parallelism = 1;
    }
    return absl::OkStatus();
  }

  absl::Status operator()(const Fuse& change) {
    PENSTOCK_ASSIGN_OR_RETURN(NodeModel * node, Find(change.node));
    if (node->inputs.size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("what if: fused nodes must have one input; node ",
                       change.node, " has ", node->inputs.size()));
    }
    NodeModel& input = model_.nodes[node->inputs[0]];
    node->busy = Sum(node->busy, input.busy);
    node->cpu = Sum(node->cpu, input.cpu);
    node->cores_per_task = node->busy.value > 0 && node->cpu.value > 0
                               ? node->cpu.value / node->busy.value
                               : 1;
    node->is_sequential |= input.is_sequential && input.busy.value > 0;
    if (node->is_sequential) node->parallelism = 1;
    input.busy = input.cpu = Estimate{};
    input.hands_over = false;
    input.buffer_rows = 0;
    return absl::OkStatus();
  }

  absl::Status operator()(const MoveNode& change) {
    PENSTOCK_ASSIGN_OR_RETURN(const int node, PlaceOf(change.node));
    const double before = AllCpu();
    std::optional<int> place;
    if (change.before) {
      PENSTOCK_ASSIGN_OR_RETURN(place, PlaceOf(*change.before));
    }
    PENSTOCK_RETURN_IF_ERROR(Move(model_, node, place));
    if (before > 0) Scale(model_.unattributed, AllCpu() / before);
    return absl::OkStatus();
  }

  absl::Status operator()(const OnWorkers& change) {
    PENSTOCK_RETURN_IF_ERROR(Positive("workers' cores", change.cores));
    if (change.network_bytes_per_second) {
      PENSTOCK_RETURN_IF_ERROR(Positive("the network's bytes a second",
                                        *change.network_bytes_per_second));
    }
    PENSTOCK_ASSIGN_OR_RETURN(const int after, PlaceOf(change.after));
    return Offload(model_, after, change.cores,
                   change.network_bytes_per_second);
  }

  absl::Status operator()(const ScaleConsumer& change) {
    PENSTOCK_RETURN_IF_ERROR(Positive("consumer factor", change.factor));
    if (model_.resources.consumer_time) {
      Scale(*model_.resources.consumer_time, 1 / change.factor);
    }
    return absl::OkStatus();
  }

 private:
  double AllCpu() const {
    double cpu = 0;
    for (const NodeModel& node : model_.nodes) cpu += node.cpu.value;
    return cpu;
  }

  // Rows that are computed are often written where their batch is made. Those
  // that are kept are copied there.
  void CopyIntoBatch(int place, double fraction) {
    const std::vector<Measured>& measured = *model_.measured;
    int at = place;
    do {
      int user = -1;
      for (size_t i = 0; i < model_.nodes.size(); ++i) {
        const std::vector<int>& inputs = model_.nodes[i].inputs;
        if (inputs.size() != 1 || inputs[0] != at) continue;
        if (user >= 0) return;
        user = static_cast<int>(i);
      }
      at = user;
    } while (at >= 0 && HandsRowsOn(measured[at].op));
    if (at < 0 || measured[at].op != plan::Node::kBatch) return;
    const std::optional<double>& speed =
        model_.resources.memory_bytes_per_second;
    const double bytes =
        fraction * model_.nodes[at].visits * measured[at].row_bytes;
    const double copying =
        bytes / (speed ? kShareOfOneCore * *speed : kUsualCopyBytesPerSecond);
    for (Estimate* each : {&model_.nodes[at].busy, &model_.nodes[at].cpu}) {
      if (each->value < copying) *each = {copying, kCopyError * copying};
    }
  }

  static bool HandsRowsOn(plan::Node::OpCase op) {
    return op == plan::Node::kRepeat || op == plan::Node::kTake ||
           op == plan::Node::kSkip || op == plan::Node::kPrefetch ||
           op == plan::Node::kShuffle || op == plan::Node::kFilter;
  }

  absl::StatusOr<int> PlaceOf(uint32_t id) const {
    const std::optional<int> place = FindNode(model_, id);
    if (place) return *place;
    return absl::InvalidArgumentError(
        absl::StrCat("what if: node must be one of the model's; got ", id));
  }

  absl::StatusOr<NodeModel*> Find(uint32_t id) {
    PENSTOCK_ASSIGN_OR_RETURN(const int place, PlaceOf(id));
    return &model_.nodes[place];
  }

  Model& model_;
};

}  // namespace

std::vector<int> OnlyBelow(const Model& model, int place) {
  // Inputs come before users, so one walk down does for each.
  std::vector<bool> is_below(model.nodes.size(), false);
  std::vector<bool> is_elsewhere(model.nodes.size(), false);
  is_below[place] = true;
  if (place + 1 != static_cast<int>(model.nodes.size())) {
    is_elsewhere.back() = true;
  }
  std::vector<int> found;
  for (int i = static_cast<int>(model.nodes.size()) - 1; i >= 0; --i) {
    for (int input : model.nodes[i].inputs) {
      if (is_below[i]) is_below[input] = true;
      if (is_elsewhere[i] && i != place) is_elsewhere[input] = true;
    }
    if (i != place && is_below[i] && !is_elsewhere[i]) found.push_back(i);
  }
  return found;
}

absl::StatusOr<Model> Apply(Model model, absl::Span<const Change> changes) {
  for (const Change& change : changes) {
    PENSTOCK_RETURN_IF_ERROR(std::visit(Changer(model), change));
  }
  return model;
}

absl::StatusOr<Bound> WhatIf(const Model& model,
                             absl::Span<const Change> changes, KnobsAre knobs) {
  PENSTOCK_ASSIGN_OR_RETURN(Model changed, Apply(model, changes));
  return FindBound(changed, knobs);
}

}  // namespace penstock::tuner
