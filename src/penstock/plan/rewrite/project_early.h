// project_early: components that nothing later reads are dropped before a
// shuffle or prefetch holds them, and maps do not compute them.
//
// Between a native map, which says what it reads, and the node whose components
// they are, only nodes stand that hand rows on as they are. Steps that may fail
// stay. Not through a cache: other datasets may read it, too.
#pragma once

#include "penstock/plan/rewrite/pass.h"

namespace penstock::plan {

bool ProjectEarly(Draft& draft, int id, PassContext& context);

}  // namespace penstock::plan
