// fuse_maps: two maps, one after the other, become one; so do two filters.
//
// Of native functions that draw nothing: random numbers depend on the node and
// the step. One map is one pass over a chunk, one hand-over and no column that
// only the second reads; steps whose results nobody reads any more go, unless
// they may fail. Errors name the node that they come from.
//
// The second of two filters is asked about rows that the first would have
// dropped, so it must not be able to fail, and it must be cheap.
#pragma once

#include "penstock/plan/rewrite/pass.h"

namespace penstock::plan {

bool FuseMaps(Draft& draft, int id, PassContext& context);

}  // namespace penstock::plan
