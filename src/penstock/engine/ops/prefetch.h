// Prefetch: computes its input ahead of the caller, on the executor.
//
//   Order        that of the input
//   Cardinality  that of the input
//   Memory       buffer_size elements; if unset, four chunks, or of large ones
//                as many as reach 16 MB
//   Threads      a task pulls the input; the caller takes what is ready
//   Checkpoint   the input's state before the oldest row not given yet, and
//                nothing of its own: states fit with and without a prefetch
//   Errors       the input's
//   Knobs        buffer_size, if unset
#pragma once

#include <memory>
#include <optional>

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakePrefetch(const plan::Prefetch& spec, OperatorPtr input,
                        OpContext& context);

// A stream that gives what `input` does and computes it ahead, as a part of the
// node of `stats`: rows are not counted again. Its states are the input's.
std::unique_ptr<Stream> MakeAheadStream(const Scope& scope, NodeStats* stats,
                                        std::unique_ptr<Stream> input);

}  // namespace penstock::engine
