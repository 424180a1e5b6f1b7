// vectorize_pairs: batch, maps and unbatch become the maps alone.
//
// Who batches to make a function faster, and takes the batches apart again,
// need not: the engine runs functions over whole columns. Functions must
// compute item by item and pair only components that both come from the batch,
// or constants that fit into one element; elements have known shapes and are
// never errors, and nothing random depends on their batch.
#pragma once

#include "penstock/plan/rewrite/pass.h"

namespace penstock::plan {

bool VectorizePairs(Draft& draft, int id, PassContext& context);

}  // namespace penstock::plan
