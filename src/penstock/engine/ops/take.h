// Take: the first `count` elements. Skip: all but the first `count`.
//
//   Order        that of the input
//   Cardinality  min(count, input); max(0, input - count)
//   Memory       none
//   Threads      one caller at a time
//   Checkpoint   elements taken so far; of skip, the input's position alone
//   Errors       the input's; each counts as an element
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeTake(const plan::Take& spec, OperatorPtr input,
                    OpContext& context);
OperatorOr MakeSkip(const plan::Skip& spec, OperatorPtr input,
                    OpContext& context);

}  // namespace penstock::engine
