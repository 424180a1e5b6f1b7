#include "penstock/plan/sample.h"

#include <cstdint>
#include <vector>

namespace penstock::plan {
namespace {

bool IsLeftOut(const Node& node) {
  return node.has_shuffle() || node.has_cache() || node.has_prefetch() ||
         node.has_repeat();
}

}  // namespace

void KeepForSample(Plan& plan) {
  std::vector<uint32_t> stands_for(plan.nodes_size());
  for (int i = 0; i < plan.nodes_size(); ++i) {
    Node& node = *plan.mutable_nodes(i);
    for (int k = 0; k < node.inputs_size(); ++k) {
      node.set_inputs(k, stands_for[node.inputs(k)]);
    }
    stands_for[i] = IsLeftOut(node) ? node.inputs(0) : static_cast<uint32_t>(i);
  }
  if (plan.nodes_size() == 0) return;
  const int root = static_cast<int>(stands_for.back());
  plan.mutable_nodes()->DeleteSubrange(root + 1, plan.nodes_size() - root - 1);
}

}  // namespace penstock::plan
