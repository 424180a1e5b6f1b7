// Random: pseudo-random int64 values without end.
//
//   Order        value i is decided by (seed, i), and with
//                rerandomize_each_iteration by the epoch and repetition too
//   Cardinality  infinite
//   Memory       none
//   Threads      one caller at a time
//   Checkpoint   the next ordinal
//   Errors       none
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeRandom(const plan::Random& spec, OpContext& context);

}  // namespace penstock::engine
