// Map: a function of each element.
//
//   Order        that of the input, unless deterministic=False
//   Cardinality  that of the input
//   Memory       in parallel: one chunk per place in the reorder window
//   Threads      inline in the caller, or as tasks on the executor
//   Checkpoint   the input's position before the oldest row not given yet
//   Errors       the function's, each at its element
//   Knobs        parallelism (and with it the width of the window)
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeMap(const plan::Map& spec, OperatorPtr input,
                   OpContext& context);

}  // namespace penstock::engine
