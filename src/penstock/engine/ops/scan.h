// Scan: a function of each element and a state that it passes on. Reduce: only
// the last state.
//
//   Order        that of the input; one element after another, by nature
//   Cardinality  that of the input; 1
//   Memory       one state
//   Threads      one caller at a time
//   Checkpoint   the input's position and the state itself: only its value has
//                meaning
//   Errors       the input's; the function's, and the state stays as it was. In
//                reduce, any error is the result
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeScan(const plan::Scan& spec, OperatorPtr input,
                    OpContext& context);
OperatorOr MakeReduce(const plan::Reduce& spec, OperatorPtr input,
                      OpContext& context);

}  // namespace penstock::engine
