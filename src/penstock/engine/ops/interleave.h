// Interleave: a dataset for each element, several of them read in turn.
// FlatMap: one after another.
//
//   Order        block_length elements from each of cycle_length datasets in
//                turn; one that ends leaves its place to the next element's.
//                With deterministic=False, whichever has something first
//   Cardinality  unknown
//   Memory       one chunk per open dataset (in parallel, a few)
//   Threads      one caller at a time; in parallel, a task per open dataset
//   Checkpoint   the input's position; of each open dataset the position of the
//                element it was made from and its own
//   Errors       the input's and the function's, at their places, and the
//                datasets' own
//   Knobs        parallelism. cycle_length is meaning, not speed
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeInterleave(const plan::Interleave& spec, OperatorPtr input,
                          OpContext& context);
OperatorOr MakeFlatMap(const plan::FlatMap& spec, OperatorPtr input,
                       OpContext& context);

// The same over `outer`, whose elements are `leaves`, in place of the node's
// input: the last part of group_by_window.
OperatorOr MakeFlatMapOver(OperatorPtr outer, std::vector<TensorSpec> leaves,
                           const plan::Function& function, OpContext& context);

}  // namespace penstock::engine
