// How a node puts rows through a Python function of the user's.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/data/spec.h"
#include "penstock/engine/operator.h"
#include "penstock/engine/ops/parallel_map.h"

namespace penstock::engine {

struct PythonCallOptions {
  // Components before this one are none of the function's arguments.
  size_t first_argument = 0;
  // Rows keep their components, and what the function gives is added after
  // them: for those who look at both (filter).
  bool keeps_input = false;
  // Calls of a stream at once, unless the node's knob says otherwise; 0: any.
  int64_t at_once = 0;
  // What the function gives, as the engine will believe it.
  std::vector<TensorSpec> result;
};

// Calls of `function` in the run's processes. Results have their rows' lineage,
// and errors say whose they are and of which row. Failed precondition if the
// run has no processes. What is given must outlive the calls.
absl::StatusOr<StartRows> StartInProcesses(const plan::Function& function,
                                           const PythonCallOptions& options,
                                           const Scope& scope,
                                           const OpInfo& info);

}  // namespace penstock::engine
