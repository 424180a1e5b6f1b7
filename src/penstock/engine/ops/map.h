// Map: a function of each element.
//
//   Order        that of the input, unless deterministic=False
//   Cardinality  that of the input
//   Memory       in parallel: one chunk per place in the reorder window; rows
//                of large batches in the memory of their frame
//   Threads      the caller's; tasks on the executor once chunks take so long
//                that the hand-off is worth it
//   Checkpoint   the input's position before the oldest row not given yet
//   Errors       the function's, each at its element
//   Knobs        parallelism (and with it the width of the window); unset, as
//                many threads as there are
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeMap(const plan::Map& spec, OperatorPtr input,
                   OpContext& context);

}  // namespace penstock::engine
