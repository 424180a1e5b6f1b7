// push_filter: a filter goes before a map that it does not need: rows that are
// dropped are not computed. It needs nothing of a map that hands on what the
// filter asks for as it is. Of one that computes it by the way, it needs that
// part: the filter then does the part itself, and the map does it again for
// the rows that are left. That pays if few are, and if it makes some few items
// where the rest of the map makes many; so it is done for what was measured.
//
// The map's function must be native and draw nothing, and what is not computed
// must not be able to fail: a row that is dropped first cannot be an error.
// With may_hide_errors it may; else that is advice (Rewritten::declined), with
// what it would save where that was measured.
#pragma once

#include "penstock/plan/rewrite/pass.h"

namespace penstock::plan {

bool PushFilter(Draft& draft, int id, PassContext& context);

}  // namespace penstock::plan
