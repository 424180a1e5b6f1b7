// Batch by tokens: padded batches of as many elements as a budget has room for,
// rows times the longest of them.
//
// Without a window, elements that follow one another. With one, those of a
// window of elements, sorted by length before they are put together.
//
//   Order        without a window, that of the input. With one, a batch comes
//                where its oldest element does, and has its elements in order
//   Cardinality  unknown
//   Memory       a batch's, or a window's, elements (copies), charged to the
//                budget
//   Threads      one caller at a time
//   Checkpoint   the input's position before the batch or the window that is
//                open, and how many errors and batches were given since: they
//                are read again
//   Errors       the input's and the length's, where they come; an element over
//                the budget (see plan::TooLong); those of a batch, in its place
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeBatchByTokens(const plan::BatchByTokens& spec, OperatorPtr input,
                             OpContext& context);

}  // namespace penstock::engine
