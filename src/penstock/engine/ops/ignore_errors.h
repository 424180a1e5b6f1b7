// IgnoreErrors: leaves out elements that are errors.
//
//   Order        that of the input
//   Cardinality  unknown
//   Memory       none
//   Threads      one caller at a time
//   Checkpoint   the input's position
//   Errors       none but those that end the run; counted, and logged if asked
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeIgnoreErrors(const plan::IgnoreErrors& spec, OperatorPtr input,
                            OpContext& context);

}  // namespace penstock::engine
