#include "penstock/tuner/layout.h"

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace penstock::tuner {

using plan::Snapshot;

Layout LayOut(const Snapshot& snapshot) {
  const int count = snapshot.nodes_size();
  absl::flat_hash_map<uint32_t, int> index;
  for (int i = 0; i < count; ++i) index[snapshot.nodes(i).node()] = i;
  std::vector<std::vector<int>> inputs(count);
  std::vector<bool> is_used(count, false);
  for (int i = 0; i < count; ++i) {
    for (uint32_t input : snapshot.nodes(i).inputs()) {
      inputs[i].push_back(index[input]);
      is_used[index[input]] = true;
    }
  }
  // The roots of datasets that functions make are inputs of their nodes.
  for (int i = 0; i < count; ++i) {
    const Snapshot::Node& node = snapshot.nodes(i);
    if (node.has_inside() && !is_used[i]) {
      inputs[index[node.inside()]].push_back(i);
    }
  }
  Layout layout;
  std::vector<int> place(count, -1);
  // Iterative, since plans may be deep: -2 is "being visited".
  const auto visit = [&](int from) {
    std::vector<std::pair<int, size_t>> path = {{from, 0}};
    if (place[from] != -1) return;
    place[from] = -2;
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next < inputs[node].size()) {
        const int input = inputs[node][next++];
        if (place[input] == -1) {
          place[input] = -2;
          path.emplace_back(input, 0);
        }
        continue;
      }
      place[node] = static_cast<int>(layout.order.size());
      layout.order.push_back(node);
      path.pop_back();
    }
  };
  const int root = index[snapshot.root()];
  place[root] = -3;  // kept for last
  for (int i = 0; i < count; ++i) visit(i);
  place[root] = -1;
  visit(root);
  for (int node : layout.order) {
    std::vector<int> places;
    for (int input : inputs[node]) {
      if (place[input] >= 0 && place[input] < place[node]) {
        places.push_back(place[input]);
      }
    }
    layout.inputs.push_back(std::move(places));
    const Snapshot::Node& from = snapshot.nodes(node);
    layout.inside.push_back(from.has_inside() ? place[index[from.inside()]]
                                              : -1);
  }
  return layout;
}

std::vector<uint32_t> PullersOf(const Layout& layout,
                                const std::vector<bool>& has_buffer) {
  const size_t count = layout.order.size();
  // The consumer's side pulls the root. From there down; of several users, the
  // last one counts.
  std::vector<uint32_t> pullers(count, 0);
  for (size_t i = count; i-- > 0;) {
    for (int input : layout.inputs[i]) {
      const bool is_inside = layout.inside[input] == static_cast<int>(i);
      // Numbers of places, shifted: 0 is the root's puller.
      pullers[input] = has_buffer[i] || is_inside
                           ? static_cast<uint32_t>(2 * i + 1 + is_inside)
                           : pullers[i];
    }
  }
  return pullers;
}

}  // namespace penstock::tuner
