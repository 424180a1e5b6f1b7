// Prefetch: computes its input ahead of the caller, on the executor.
//
//   Order        that of the input
//   Cardinality  that of the input
//   Memory       buffer_size elements, or about four chunks if unset
//   Threads      a task pulls the input; the caller takes what is ready
//   Checkpoint   the input's position before the oldest row not given yet
//   Errors       the input's
//   Knobs        buffer_size, if unset
#pragma once

#include <memory>
#include <optional>

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakePrefetch(const plan::Prefetch& spec, OperatorPtr input,
                        OpContext& context);

// A stream that gives what `input` does and computes it ahead. `stats` may be
// those of another node: positions are the input's, so that one may be put in
// front of any stream without changing what is saved.
std::unique_ptr<Stream> MakeAheadStream(const Scope& scope, NodeStats* stats,
                                        std::unique_ptr<Stream> input,
                                        std::optional<int64_t> buffer_rows);

}  // namespace penstock::engine
