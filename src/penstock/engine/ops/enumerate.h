// Enumerate: a running int64 beside each element.
//
//   Order        that of the input
//   Cardinality  that of the input
//   Memory       none
//   Threads      one caller at a time
//   Checkpoint   the next number
//   Errors       the input's; each counts
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeEnumerate(const plan::Enumerate& spec, OperatorPtr input,
                         OpContext& context);

}  // namespace penstock::engine
