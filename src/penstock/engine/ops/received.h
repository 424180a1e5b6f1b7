// Received: rows that other engines compute (plan/divide.h), as the
// environment's Receiver gives them.
//
//   Order        the receiver's
//   Cardinality  unknown, or none
//   Memory       the receiver's
//   Threads      one caller at a time
//   Checkpoint   the receiver's
//   Errors       those of the rows; FailedPrecondition if there is no receiver;
//                DataLoss if rows are not what the plan says
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeReceived(const plan::Received& spec, OpContext& context);

}  // namespace penstock::engine
