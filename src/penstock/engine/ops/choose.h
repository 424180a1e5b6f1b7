// Sample from datasets: the next element comes from an input drawn by weight.
// Choose from datasets: from the input that another dataset names.
//
//   Order        that of the draws or choices; of each input, its own
//   Cardinality  of sample, the sum; with stop_on_empty, and of choose, unknown
//   Memory       a chunk per input
//   Threads      one caller at a time
//   Checkpoint   the number of draws (of choose, the choices' position), and
//   the
//                inputs' positions
//   Errors       the inputs' and the choices', in their places
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeSample(const plan::SampleFromDatasets& spec,
                      std::vector<OperatorPtr> inputs, OpContext& context);
// The first input gives the choices.
OperatorOr MakeChoose(const plan::ChooseFromDatasets& spec,
                      std::vector<OperatorPtr> inputs, OpContext& context);

}  // namespace penstock::engine
