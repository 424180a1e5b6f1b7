// Range and counter: start, start + step, ...
//
//   Order        ascending ordinal
//   Cardinality  that of Python's range; a counter never ends
//   Memory       none
//   Threads      one caller at a time
//   Checkpoint   the next ordinal
//   Errors       none
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeRange(const plan::Range& spec, OpContext& context);
OperatorOr MakeCounter(const plan::Counter& spec, OpContext& context);

}  // namespace penstock::engine
