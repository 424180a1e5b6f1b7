// ListFiles: the names of files that match patterns.
//
//   Order        sorted by name, or shuffled by (seed, epoch, repetition)
//   Cardinality  unknown until the directory was read
//   Memory       the names
//   Threads      one caller at a time; directories are read by I/O threads
//   Checkpoint   the next ordinal, and a hash of the names: a restore finds out
//                if files came or went meanwhile
//   Errors       NotFound if nothing matches; FailedPrecondition if the names
//                are not those of the saved state
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeListFiles(const plan::ListFiles& spec, OpContext& context);

}  // namespace penstock::engine
