// Repeat: the input again and again.
//
//   Order        that of each repetition
//   Cardinality  count x input; without a count infinite, unless the input is
//                empty: then it ends
//   Memory       none
//   Threads      one caller at a time
//   Checkpoint   the repetition, and the input's position in it
//   Errors       the input's
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeRepeat(const plan::Repeat& spec, OperatorPtr input,
                      OpContext& context);

}  // namespace penstock::engine
