// What would happen if: changes to a model, one after another. A model with
// changes is a model, so that they compose and nothing is measured anew.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/tuner/bound.h"
#include "penstock/tuner/model.h"

namespace penstock::tuner {

struct SetCores {
  double cores;
};
struct SetTasks {  // of a node that is not sequential
  uint32_t node;
  int64_t tasks;
};
struct SetReadDepth {  // of each source that is open
  uint32_t node;
  int64_t reads;
};
struct SetReadBytes {
  uint32_t node;
  int64_t bytes;
};
struct SetReorderRows {
  uint32_t node;
  int64_t rows;
};
struct SetBufferRows {
  uint32_t node;
  int64_t rows;
};
struct SetOutputRows {
  int64_t rows;
};
struct ScaleDisk {  // bytes and operations a second
  double factor;
};
// A node costs `factor` times as much, as if written otherwise.
struct ScaleCost {
  uint32_t node;
  double factor;
};
// Rows of the node are kept: what is below it alone costs (1 - fraction), and
// reading the kept ones is added.
struct CacheAfter {
  uint32_t node;
  plan::CacheTier tier;
  double fraction;
  double size_bytes;  // of all its rows
};
// The node and its only input become one, without a hand-over between them.
struct Fuse {
  uint32_t node;
};
// The node is done right before another one, or last of all (move.h).
struct MoveNode {
  uint32_t node;
  std::optional<uint32_t> before;
};
// Workers of a service do what is up to the node (offload.h).
struct OnWorkers {
  uint32_t after;
  double cores;
  std::optional<double> network_bytes_per_second;
};
struct ScaleConsumer {  // the consumer is `factor` times as fast
  double factor;
};

using Change =
    std::variant<SetCores, SetTasks, SetReadDepth, SetReadBytes, SetReorderRows,
                 SetBufferRows, SetOutputRows, ScaleDisk, ScaleCost, CacheAfter,
                 Fuse, MoveNode, OnWorkers, ScaleConsumer>;

// The model after all changes, in order. What was set is not free any more. Its
// places are those of `model` unless a node was moved. InvalidArgument for
// nodes that are not there and numbers that mean nothing.
absl::StatusOr<Model> Apply(Model model, absl::Span<const Change> changes);

// The bound after the changes.
absl::StatusOr<Bound> WhatIf(const Model& model,
                             absl::Span<const Change> changes, KnobsAre knobs);

// Places of the nodes that run for this one alone, itself left out.
std::vector<int> OnlyBelow(const Model& model, int place);

}  // namespace penstock::tuner
