// drop_no_ops: nodes that change nothing are left out.
//
//   skip(0), take of all that there is, repeat(1), shard(1, 0)
//   concatenate with a dataset that is known to be empty
//   a map that returns its arguments as they are
//   a prefetch after a prefetch
//   batch and unbatch with nothing between them
//
// Not where somebody could see it: a count must be known, not claimed; a batch
// tells rows of different shapes, holds errors back and mixes lineages; and
// Python functions see how early they are called.
#pragma once

#include "penstock/plan/rewrite/pass.h"

namespace penstock::plan {

bool DropNoOps(Draft& draft, int id, PassContext& context);

}  // namespace penstock::plan
