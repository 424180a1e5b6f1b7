// push_filter: a filter that asks only for what a map hands on as it is goes
// before that map: rows that are dropped are not computed.
//
// The map's function must be native, draw nothing and not be able to fail: a
// row that is dropped first cannot be an error. With may_hide_errors it may;
// else that is advice (Rewritten::declined), with what it would save where that
// was measured.
#pragma once

#include "penstock/plan/rewrite/pass.h"

namespace penstock::plan {

bool PushFilter(Draft& draft, int id, PassContext& context);

}  // namespace penstock::plan
