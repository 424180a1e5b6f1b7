#include "penstock/tuner/offload.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/tuner/what_if.h"

namespace penstock::tuner {
namespace {

// Core-seconds for a byte, over sockets of one host: to send it, or to receive
// it and put it where the trainer reads it.
constexpr double kHandOnSeconds = 0.25e-9;
// Of that: networks and batches differ.
constexpr double kHandOnError = 0.25;

void Add(Estimate& to, const Estimate& more) {
  to.value += more.value;
  to.error = std::hypot(to.error, more.error);
}

}  // namespace

absl::Status Offload(Model& model, uint32_t after, double cores,
                     std::optional<double> network_bytes_per_second) {
  const std::optional<int> place = FindNode(model, after);
  if (!place) {
    return absl::InvalidArgumentError(
        absl::StrCat("what if: node must be one of the model's; got ", after));
  }
  const Measured& measured = (*model.measured)[*place];
  std::vector<int> there = OnlyBelow(model, *place);
  there.push_back(*place);
  for (int each : there) {
    const Measured& node = (*model.measured)[each];
    if (node.op == plan::Node::kReceived) {
      return absl::InvalidArgumentError(
          absl::StrCat("what if: rows of \"", node.name,
                       "\" come from a service's workers already"));
    }
    if (model.nodes[each].inside >= 0 && each == *place) {
      return absl::InvalidArgumentError(
          absl::StrCat("what if: workers do what is up to a transformation; \"",
                       node.name, "\" is inside the function of \"",
                       (*model.measured)[model.nodes[each].inside].name, "\""));
    }
  }
  const double bytes = model.nodes[*place].visits * measured.row_bytes;
  const double sending = bytes * kHandOnSeconds;
  const Estimate handing = {sending, kHandOnError * sending};
  double cpu_here = 0;
  for (const NodeModel& node : model.nodes) cpu_here += node.cpu.value;
  Estimate work = handing;
  for (int each : there) Add(work, model.nodes[each].cpu);
  // What nobody was charged with goes where most of the work does.
  const double share =
      cpu_here > 0 ? (work.value - handing.value) / cpu_here : 0;
  Add(work,
      {share * model.unattributed.value, share * model.unattributed.error});
  model.unattributed.value *= 1 - share;
  model.unattributed.error *= 1 - share;

  for (int each : there) {
    NodeModel& node = model.nodes[each];
    for (Estimate* of :
         {&node.busy, &node.cpu, &node.disk_bytes, &node.file_bytes,
          &node.disk_ops, &node.read_time, &node.kept_bytes}) {
      *of = Estimate{};
    }
    if (each != *place) {
      node.visits = node.chunks = 0;
      node.is_cached = true;
    }
  }
  NodeModel& node = model.nodes[*place];
  node.busy = node.cpu = handing;
  node.cores_per_task = 1;
  node.reorder_rows = 0;
  node.is_serialized = node.is_sequential = false;
  node.is_pinned = false;  // one thread receives for each worker
  node.max_parallelism = kMaxTasks;
  node.workers_time = {work.value / cores, work.error / cores};
  node.network_bytes = {bytes, 0};
  if (network_bytes_per_second) {
    model.resources.network_bytes_per_second = network_bytes_per_second;
  }
  return absl::OkStatus();
}

}  // namespace penstock::tuner
