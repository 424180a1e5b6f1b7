// Cache: keeps the first whole pass over its input in memory and replays it.
//
//   Order        that of the first pass
//   Cardinality  that of the input
//   Memory       all rows, charged to the memory budget
//   Threads      one caller at a time; iterators of one dataset share the rows
//   Checkpoint   rows given so far; a restore without the cache at hand fills
//                it again from the beginning
//   Errors       the input's: they are not kept, and a pass with errors is not
//                either; ResourceExhausted if the rows do not fit
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

// `finite_rows`: the input's cardinality where it is known; then the pass is
// whole without seeing the end.
OperatorOr MakeCache(std::optional<int64_t> finite_rows, OperatorPtr input,
                     OpContext& context);

}  // namespace penstock::engine
