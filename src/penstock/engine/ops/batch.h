// Batch: groups of consecutive elements as one. PaddedBatch: after padding them
// to one shape. Rebatch: regroups the rows of batches to given sizes in turn.
//
//   Order        that of the input
//   Cardinality  ceil(input / size), or floor with drop_remainder
//   Memory       one batch; dense elements that lie together are not copied
//   Threads      one caller at a time
//   Checkpoint   the input's position at the first element of the open batch,
//                and how many errors since were given already
//   Parts        of a RunPart that stitches it, what is left goes to Run::loose
//   Errors       the input's, at once, and the elements around an error form a
//                batch; elements of unequal shapes: in place of their batch
//   Knobs        none: sizes are meaning, not speed
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeBatch(const plan::Batch& spec, OperatorPtr input,
                     OpContext& context);
OperatorOr MakePaddedBatch(const plan::PaddedBatch& spec, OperatorPtr input,
                           OpContext& context);
OperatorOr MakeRaggedBatch(const plan::RaggedBatch& spec, OperatorPtr input,
                           OpContext& context);
OperatorOr MakeSparseBatch(const plan::SparseBatch& spec, OperatorPtr input,
                           OpContext& context);
OperatorOr MakeRebatch(const plan::Rebatch& spec, OperatorPtr input,
                       OpContext& context);

}  // namespace penstock::engine
