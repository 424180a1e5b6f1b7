// Zip: element i of every input, side by side.
//
//   Order        that of the inputs
//   Cardinality  the shortest input's; once one has ended, the zip has
//   Memory       one chunk per input
//   Threads      one caller at a time
//   Checkpoint   the inputs' positions
//   Errors       an error in any input is an error at that element
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeZip(std::vector<OperatorPtr> inputs, OpContext& context);

}  // namespace penstock::engine
