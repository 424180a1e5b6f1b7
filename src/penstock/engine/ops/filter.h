// Filter: the elements that a predicate holds for. TakeWhile: those before the
// first that it does not hold for.
//
//   Order        that of the input
//   Cardinality  unknown
//   Memory       a quarter of a chunk, while a pull gathers what it keeps
//   Threads      one caller at a time
//   Checkpoint   the input's position; of take_while, whether it has ended
//   Errors       the input's and the predicate's, each at its element
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeFilter(const plan::Filter& spec, OperatorPtr input,
                      OpContext& context);
OperatorOr MakeTakeWhile(const plan::TakeWhile& spec, OperatorPtr input,
                         OpContext& context);

}  // namespace penstock::engine
