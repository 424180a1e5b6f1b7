// PythonMap: each element through a function of the user's, run in processes of
// a pool.
//
//   Order        that of the input, unless given up
//   Cardinality  that of the input
//   Memory       the chunks under way: twice the parallelism
//   Threads      one caller at a time; the function runs in no thread of ours
//   Checkpoint   the input's position; rows under way are computed again
//   Errors       what the function raises, at its row; a process that ends, or
//                an element past its deadline, likewise
//   Knobs        parallelism
#pragma once

#include <optional>

#include "penstock/engine/operator.h"

namespace penstock::engine {

struct PythonMapOptions {
  std::optional<int64_t> parallelism;
  std::optional<bool> deterministic;
  // As in PythonCallOptions.
  size_t first_argument = 0;
  bool keeps_input = false;
};

OperatorOr MakePythonMap(const plan::Function& function,
                         const PythonMapOptions& options, OperatorPtr input,
                         OpContext& context);

}  // namespace penstock::engine
