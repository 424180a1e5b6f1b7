#include "penstock/tuner/drift.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock::tuner {
namespace {

constexpr double kErrors = 3;
constexpr double kLeastMove = 1.0 / 6;
constexpr double kLeastShare = 0.05;
// From here on a fall is one that others make.
constexpr double kCrowdedFall = 0.9;
// A core's task has this much of it, or it waits for something else.
constexpr double kComputes = 0.7;

bool HasMoved(const Estimate& before, const Estimate& now) {
  const double apart = std::abs(now.value - before.value);
  return apart > kErrors * std::hypot(before.error, now.error) &&
         apart > kLeastMove * std::max(before.value, now.value);
}

double Sum(const Demands& demands, Estimate NodeDemand::*field) {
  double sum = 0;
  for (const NodeDemand& node : demands.nodes) sum += (node.*field).value;
  return sum;
}

// The node whose task mostly computed, and computed most; -1: none did.
int Costliest(const Demands& demands) {
  int costliest = -1;
  for (size_t i = 0; i < demands.nodes.size(); ++i) {
    const NodeDemand& node = demands.nodes[i];
    if (node.busy.value <= 0 || node.cpu.value < kComputes * node.busy.value) {
      continue;
    }
    if (costliest < 0 || node.cpu.value > demands.nodes[costliest].cpu.value) {
      costliest = static_cast<int>(i);
    }
  }
  return costliest;
}

bool IsCrowded(const Demands& before, const Demands& now) {
  const int node = Costliest(before);
  if (node < 0 || now.nodes[node].busy.value <= 0) return false;
  const double cpu_before = Sum(before, &NodeDemand::cpu);
  const double cpu_now = Sum(now, &NodeDemand::cpu);
  const auto share = [node](const Demands& demands) {
    return demands.nodes[node].cpu.value / demands.nodes[node].busy.value;
  };
  return std::abs(cpu_now - cpu_before) <= kLeastMove * cpu_before &&
         now.rate.value < kCrowdedFall * before.rate.value &&
         now.used_cores < kCrowdedFall * before.used_cores &&
         share(now) < kCrowdedFall * share(before);
}

std::string Said(const char* of, const NodeDemand& node, double before,
                 double now) {
  return absl::StrFormat("%s of %s: %.3g ms, not %.3g", of, node.name,
                         now * 1e3, before * 1e3);
}

}  // namespace

Demands DemandsOf(const Model& model) {
  Demands demands;
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const NodeModel& node = model.nodes[i];
    const Measured& measured = (*model.measured)[i];
    // That of its tasks: it is held against their time.
    Estimate cpu = node.cpu;
    cpu.value = std::max(0.0, cpu.value - node.read_cpu.value);
    demands.nodes.push_back(
        {measured.id, measured.name, node.busy, cpu, node.read_time});
  }
  if (model.resources.consumer_time) {
    demands.consumer_time = *model.resources.consumer_time;
  }
  demands.rate = model.rate;
  demands.cores = model.resources.cores;
  demands.used_cores = model.used_cores;
  return demands;
}

Movement Compare(const Demands& before, const Demands& now) {
  if (before.nodes.size() != now.nodes.size()) {
    return {Moved::kDrifted, "the pipeline has other nodes"};
  }
  if (before.cores != now.cores) {
    return {Moved::kDrifted,
            absl::StrFormat("%.3g cores, not %.3g", now.cores, before.cores)};
  }
  if (IsCrowded(before, now)) return {Moved::kCrowded, ""};
  const double cpu =
      std::max(Sum(before, &NodeDemand::cpu), Sum(now, &NodeDemand::cpu));
  const double busy =
      std::max(Sum(before, &NodeDemand::busy), Sum(now, &NodeDemand::busy));
  const double reads = std::max(Sum(before, &NodeDemand::read_time),
                                Sum(now, &NodeDemand::read_time));
  for (size_t i = 0; i < now.nodes.size(); ++i) {
    const NodeDemand& a = before.nodes[i];
    const NodeDemand& b = now.nodes[i];
    const auto matters = [](double x, double y, double sum) {
      return std::max(x, y) >= kLeastShare * sum;
    };
    if (matters(a.cpu.value, b.cpu.value, cpu) && HasMoved(a.cpu, b.cpu)) {
      return {Moved::kDrifted, Said("CPU", b, a.cpu.value, b.cpu.value)};
    }
    // Of a task that computes, time beyond its CPU is a wait for cores.
    const bool waits = b.cpu.value < kComputes * b.busy.value &&
                       a.cpu.value < kComputes * a.busy.value;
    if (waits && matters(a.busy.value, b.busy.value, busy) &&
        HasMoved(a.busy, b.busy)) {
      return {Moved::kDrifted, Said("time", b, a.busy.value, b.busy.value)};
    }
    if (matters(a.read_time.value, b.read_time.value, reads) &&
        HasMoved(a.read_time, b.read_time)) {
      return {Moved::kDrifted,
              Said("reads", b, a.read_time.value, b.read_time.value)};
    }
  }
  if (HasMoved(before.consumer_time, now.consumer_time)) {
    return {Moved::kDrifted, absl::StrFormat("the consumer: %.3g ms, not %.3g",
                                             now.consumer_time.value * 1e3,
                                             before.consumer_time.value * 1e3)};
  }
  return {};
}

}  // namespace penstock::tuner
