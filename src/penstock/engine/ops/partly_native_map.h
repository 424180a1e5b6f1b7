// PartlyNativeMap: a function of each element that is there twice. Its steps
// know most elements; those for which a step is an error are computed by the
// user's Python, so that whatever that does with them is what comes out.
//
//   Order        that of the input, unless given up
//   Cardinality  that of the input
//   Memory       as a map that runs in parallel, and a second time where rows
//                of a chunk come from Python
//   Threads      tasks on the executor; Python runs in no thread of ours, and
//                no process is started before it is needed
//   Checkpoint   the input's position; rows under way are computed again
//   Errors       what Python raises, at its row; never a step's
//   Knobs        parallelism, of the tasks
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakePartlyNativeMap(const plan::Map& spec, OperatorPtr input,
                               OpContext& context);

}  // namespace penstock::engine
