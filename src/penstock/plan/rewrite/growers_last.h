// growers_last: steps at the end of a map that only make items larger (a cast
// to float, the arithmetic after it) are done after a shuffle, which then holds
// the smaller items.
//
// Of native functions that draw nothing; the steps compute item by item, keep
// the shape and cannot fail. Nothing is moved through a cache, which other
// datasets may read, nor through a batch, which holds no more than it gives.
#pragma once

#include "penstock/plan/rewrite/pass.h"

namespace penstock::plan {

bool GrowersLast(Draft& draft, int id, PassContext& context);

}  // namespace penstock::plan
