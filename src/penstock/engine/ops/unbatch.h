// Unbatch: splits each element along its first dimension.
//
//   Order        that of the input, rows in order
//   Cardinality  unknown, unless the first dimension is
//   Memory       one chunk of the input; dense rows are not copied
//   Threads      one caller at a time
//   Checkpoint   the input's position, and rows given from its chunk
//   Errors       the input's; components with different first dimensions
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeUnbatch(OperatorPtr input, OpContext& context);

// The same as a part of another operator, whose node it counts for.
OperatorOr MakeUnbatchRows(OperatorPtr input, OpContext& context);

}  // namespace penstock::engine
