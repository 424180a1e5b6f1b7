#include "penstock/plan/sample.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/plan/print.h"

namespace penstock::plan {
namespace {

bool IsLeftOut(const Node& node) {
  return node.has_shuffle() || node.has_cache() || node.has_prefetch() ||
         node.has_repeat();
}

// Lets what reads a node that is left out read its input.
void LeaveOut(const std::vector<bool>& is_left_out, Plan& plan) {
  std::vector<uint32_t> stands_for(plan.nodes_size());
  for (int i = 0; i < plan.nodes_size(); ++i) {
    Node& node = *plan.mutable_nodes(i);
    for (int k = 0; k < node.inputs_size(); ++k) {
      node.set_inputs(k, stands_for[node.inputs(k)]);
    }
    stands_for[i] = is_left_out[i] ? node.inputs(0) : static_cast<uint32_t>(i);
  }
  if (plan.nodes_size() == 0) return;
  const int root = static_cast<int>(stands_for.back());
  plan.mutable_nodes()->DeleteSubrange(root + 1, plan.nodes_size() - root - 1);
}

}  // namespace

void KeepForSample(Plan& plan) {
  std::vector<bool> is_left_out;
  for (const Node& node : plan.nodes()) is_left_out.push_back(IsLeftOut(node));
  LeaveOut(is_left_out, plan);
}

absl::Status LeaveOutCache(const std::string& name, Plan& plan) {
  std::vector<bool> is_left_out(plan.nodes_size(), false);
  bool is_there = false;
  for (int i = 0; i < plan.nodes_size(); ++i) {
    is_left_out[i] = plan.nodes(i).has_cache() && NodeName(plan, i) == name;
    is_there = is_there || is_left_out[i];
  }
  if (!is_there) {
    return absl::NotFoundError(
        absl::StrCat("expected the name of a cache; got \"", name, "\""));
  }
  LeaveOut(is_left_out, plan);
  return absl::OkStatus();
}

}  // namespace penstock::plan
