#include "penstock/tuner/offload.h"

#include <algorithm>
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

absl::Status Refused(const Measured& node, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("what if: \"", node.name, "\" ", why));
}

// All that the node needs, itself left out.
std::vector<int> AllBelow(const Model& model, int place) {
  std::vector<bool> is_below(model.nodes.size(), false);
  is_below[place] = true;
  std::vector<int> found;
  for (int i = place; i >= 0; --i) {
    if (!is_below[i]) continue;
    if (i != place) found.push_back(i);
    for (int input : model.nodes[i].inputs) is_below[input] = true;
  }
  return found;
}

}  // namespace

absl::Status Offload(Model& model, int after, double cores,
                     std::optional<double> network_bytes_per_second) {
  const Measured& measured = (*model.measured)[after];
  if (model.nodes[after].inside >= 0) {
    return Refused(measured,
                   "is inside a function; workers do what is up to a "
                   "transformation");
  }
  std::vector<int> there = OnlyBelow(model, after);
  if (there.size() < AllBelow(model, after).size()) {
    return Refused(measured,
                   "shares its input with others, which would be read there "
                   "and here");
  }
  there.push_back(after);
  for (int each : there) {
    const Measured& node = (*model.measured)[each];
    if (node.op == plan::Node::kReceived) {
      return Refused(node, "has its rows from a service's workers already");
    }
  }
  const double bytes = model.nodes[after].visits * measured.row_bytes;
  const double sending = bytes * kHandOnSeconds;
  const Estimate handing = {sending, kHandOnError * sending};
  double all = 0;
  for (const NodeModel& node : model.nodes) all += node.cpu.value;
  Estimate work;
  for (int each : there) Add(work, model.nodes[each].cpu);
  // What nobody was charged with goes where most of the work does.
  const double share = all > 0 ? std::clamp(work.value / all, 0.0, 1.0) : 0;
  Estimate nobodys = model.unattributed;
  Scale(nobodys, share);
  Scale(model.unattributed, 1 - share);
  Add(work, nobodys);
  Add(work, handing);

  for (int each : there) {
    NodeModel& node = model.nodes[each];
    for (Estimate* of : {&node.busy, &node.cpu, &node.read_cpu,
                         &node.disk_bytes, &node.file_bytes, &node.disk_ops,
                         &node.read_time, &node.kept_bytes}) {
      *of = Estimate{};
    }
    if (each != after) {
      node.visits = node.chunks = 0;
      node.is_cached = true;
    }
  }
  NodeModel& node = model.nodes[after];
  node.busy = node.cpu = handing;
  node.cores_per_task = 1;
  node.scaling = {};
  node.keeps_order = node.is_reorder_pinned = false;
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
