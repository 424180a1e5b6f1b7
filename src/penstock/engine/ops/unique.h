// Unique: each element that was not there before.
//
//   Order        that of the input: first occurrences
//   Cardinality  unknown
//   Memory       the bytes of all elements given, charged to the budget
//   Threads      one caller at a time
//   Checkpoint   the number of elements read: they are read again
//   Errors       the input's; no two are the same
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeUnique(OperatorPtr input, OpContext& context);

}  // namespace penstock::engine
