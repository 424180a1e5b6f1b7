// Shuffle: emits its input in a seeded pseudo-random order.
//
// Holds up to `window` elements. Each element emitted is one of them, chosen by
// the generator; its place is refilled from the input.
//
//   Order        decided by (seed, window) and, if it reshuffles, by the epoch
//                and repetition: same input, same output. In a part of a run
//                (RunPart), by its first row, too
//   Cardinality  that of the input
//   Memory       window x element size, charged to the memory budget
//   Threads      one caller at a time
//   Checkpoint   at times the ordinals of the window's rows and the input's
//                position before the oldest; since then, rows given. A restore
//                reads the window's rows again
//   Errors       the input's, shuffled with the rest; ResourceExhausted, within
//                a hundred elements, if the window cannot fit
//   Knobs        none: window is meaning, not speed
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeShuffle(const plan::Shuffle& spec, OperatorPtr input,
                       OpContext& context);

}  // namespace penstock::engine
