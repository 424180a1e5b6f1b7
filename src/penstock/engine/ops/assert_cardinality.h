// Assert cardinality: the input, and an error where it has another number of
// elements than was promised.
//
//   Order        that of the input
//   Cardinality  what was promised
//   Memory       none
//   Threads      one caller at a time
//   Checkpoint   elements given so far, and the input's position
//   Errors       the input's; its own is the last element
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeAssertCardinality(const plan::AssertCardinality& spec,
                                 OperatorPtr input, OpContext& context);

}  // namespace penstock::engine
