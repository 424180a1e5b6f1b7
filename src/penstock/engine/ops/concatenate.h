// Concatenate: the first input's elements, then the second's.
//
//   Order        input by input
//   Cardinality  the sum
//   Memory       none
//   Threads      one caller at a time
//   Checkpoint   which input, and its position
//   Errors       the inputs'
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeConcatenate(std::vector<OperatorPtr> inputs, OpContext& context);

}  // namespace penstock::engine
