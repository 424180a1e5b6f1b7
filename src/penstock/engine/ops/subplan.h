// The datasets that functions make: a sub-plan started for an element.
#pragma once

#include <cstdint>

#include "penstock/engine/operator.h"

namespace penstock::engine {

// A stream of `inner` for row `row` of `values`, what the function of node
// `info` bound for it. What is random or kept in it is told apart by that row.
StreamOr StartSubplan(const Operator& inner, const Chunk& values, int64_t row,
                      const Scope& scope, const OpInfo& info);

}  // namespace penstock::engine
