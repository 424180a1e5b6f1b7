#include "penstock/tuner/read_back.h"

#include <algorithm>
#include <vector>

namespace penstock::tuner {

int CacheReadBack(const Model& model, const Limit& limit) {
  const std::vector<Measured>& measured = *model.measured;
  // By place: the full cache that it is inside of, or -1.
  std::vector<int> around(model.nodes.size(), -1);
  for (size_t i = model.nodes.size(); i-- > 0;) {
    const int outer = model.nodes[i].inside;
    if (outer < 0) continue;
    const bool is_cache = measured[outer].op == plan::Node::kCache &&
                          measured[outer].is_cache_complete;
    around[i] = is_cache ? outer : around[outer];
  }
  if (limit.node >= 0) return around[limit.node];
  if (limit.wall != Wall::kDiskBytes && limit.wall != Wall::kDiskSeeks &&
      limit.wall != Wall::kDiskOps) {
    return -1;
  }
  double all = 0;
  std::vector<double> of_cache(model.nodes.size(), 0);
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    all += model.nodes[i].disk_bytes.value;
    if (around[i] >= 0) of_cache[around[i]] += model.nodes[i].disk_bytes.value;
  }
  const auto most = std::max_element(of_cache.begin(), of_cache.end());
  return *most > all / 2 ? static_cast<int>(most - of_cache.begin()) : -1;
}

}  // namespace penstock::tuner
