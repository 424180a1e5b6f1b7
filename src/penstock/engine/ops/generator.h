// Generator: rows that a Python generator of the trainer's process makes.
//
//   Order        the generator's
//   Cardinality  unknown
//   Memory       one chunk
//   Threads      one caller at a time; the generator runs in its own thread
//   Checkpoint   rows taken so far; restore runs the generator to there again
//   Errors       what it raises, at its position; a row that does not fit its
//                signature, and the generator goes on
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeGenerator(const plan::Generator& spec, OpContext& context);

}  // namespace penstock::engine
