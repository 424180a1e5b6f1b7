// Part: some of a node's rows, if the run is of a part of them (RunPart), and
// otherwise nothing at all.
//
//   Order        that of the node
//   Cardinality  end - begin, or what there is of it; with a stride, every n-th
//                row from `begin` on
//   Memory       none
//   Threads      one caller at a time
//   Checkpoint   rows left, and the node's position
//   Errors       the node's
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorPtr MakePart(OperatorPtr op, const OpInfo& info);

}  // namespace penstock::engine
