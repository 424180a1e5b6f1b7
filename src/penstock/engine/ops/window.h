// Window: every `shift` elements, a dataset of `size` elements `stride` apart,
// for each component.
//
//   Order        that of the input
//   Cardinality  one per start; with drop_remainder, per start of a full window
//   Memory       the elements of a window, charged to the budget
//   Threads      one caller at a time
//   Checkpoint   the input's position at the next window's start
//   Parts        of a RunPart that stitches it, what is left goes to Run::loose
//   Errors       a window with an element that is one, is one
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeWindow(const plan::Window& spec, OperatorPtr input,
                      OpContext& context);

}  // namespace penstock::engine
