// The order in which the model has a snapshot's nodes.
#pragma once

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

}  // namespace penstock::tuner
