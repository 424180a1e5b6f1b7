// Pack: sequences put together into rows of one length, with the number of the
// sequence and the place in it beside each item.
//
//   Order        rows as they become full, or make room; the rest at the end,
//   by
//                age
//   Cardinality  unknown
//   Memory       the open rows
//   Threads      one caller at a time
//   Checkpoint   a position of the input, and which elements from there on are
//                in open rows: those are read again
//   Errors       the input's, where they come; a sequence that cannot be packed
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakePack(const plan::Pack& spec, OperatorPtr input,
                    OpContext& context);

}  // namespace penstock::engine
