// Shard: every num_shards-th element, from `index` on.
//
//   Order        that of the input
//   Cardinality  ceil((input - index) / num_shards)
//   Memory       none
//   Threads      one caller at a time
//   Checkpoint   the input's position and ordinal
//   Errors       the input's, of this shard's elements
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

// Rows `first`, first + n, … of the input.
std::unique_ptr<Stream> EveryNth(NodeStats* stats,
                                 std::unique_ptr<Stream> input, int64_t n,
                                 int64_t first);

OperatorOr MakeShard(const plan::Shard& spec, OperatorPtr input,
                     OpContext& context);

}  // namespace penstock::engine
