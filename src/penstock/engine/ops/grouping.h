// Group by window: elements with one key, a window's worth at a time, become
// the dataset that a function makes of them. Bucket by sequence length: the
// same with the length's bucket as key, and a padded batch made at once.
//
//   Order        a group goes on when it is full; those left at the input's end
//                by ascending key
//   Cardinality  unknown
//   Memory       the open groups' elements (copies), charged to the budget
//   Threads      one caller at a time
//   Checkpoint   a position of the input that is not after the oldest element
//   of
//                an open group, and where each group begins from there: those
//                elements are read again
//   Errors       the input's and the key's, where they come; those of a batch,
//                in its place
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeGroupByWindow(const plan::GroupByWindow& spec, OperatorPtr input,
                             OpContext& context);
OperatorOr MakeBucketBySequenceLength(const plan::BucketBySequenceLength& spec,
                                      OperatorPtr input, OpContext& context);

}  // namespace penstock::engine
