// DatasetMap: each element becomes the dataset that a function makes of it.
//
//   Order        that of the input
//   Cardinality  that of the input
//   Memory       the rows of one dataset, charged to the run, and of those in a
//                chunk
//   Threads      one caller at a time
//   Checkpoint   the input's position; a dataset half read is read again
//   Errors       the input's and the function's; a dataset larger than
//                max_element_bytes. Errors in a dataset are rows of it
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

// REQUIRES: the function has a dataset.
OperatorOr MakeDatasetMap(const plan::Map& spec, OperatorPtr input,
                          OpContext& context);

}  // namespace penstock::engine
