// The order in which the model has a snapshot's nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/snapshot.pb.h"

namespace penstock::tuner {

struct Layout {
  std::vector<int> order;  // place in the model -> in the snapshot
  std::vector<std::vector<int>> inputs;  // by place, as places
  std::vector<int> inside;               // by place; -1: in no function
};

// Inputs before users, the root last; what the root does not need comes first.
// The dataset of a function is an input of its node. The snapshot is valid.
Layout LayOut(const plan::Snapshot& snapshot);

// By place: which task pulls a node, where nobody said: its user's, but for
// what is below a buffer, which a task of its own fills, and for datasets
// inside a function, which their node's tasks run.
std::vector<uint32_t> PullersOf(const Layout& layout,
                                const std::vector<bool>& has_buffer);

}  // namespace penstock::tuner
