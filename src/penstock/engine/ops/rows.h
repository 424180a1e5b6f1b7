// Rows: elements that are there already (from_tensors, from_tensor_slices,
// from_list), or made from bound values.
//
//   Order        as given
//   Cardinality  the number of rows
//   Memory       the array itself, once, shared by all iterators
//   Threads      one caller at a time
//   Checkpoint   the next ordinal
//   Errors       DataLoss if a captured chunk is damaged
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeRows(const plan::Rows& spec, OpContext& context);
// The rows of a dataset inside an element (data/nested.h).
OperatorOr MakeNestedRows(const plan::NestedRows& spec, OpContext& context);

OperatorOr MakeValues(const plan::Values& spec, OpContext& context);

// The rows that `spec` carries or names.
absl::StatusOr<Chunk> LoadRows(const plan::Rows& spec, const Run& run);

}  // namespace penstock::engine
