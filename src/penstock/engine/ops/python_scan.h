// Scan and reduce with a Python function of the user's.
//
// A chunk of rows is one call, with the state before its first row; the process
// passes the state on from row to row and gives back the last. So calls come
// one after another.
//
//   Order        that of the input
//   Cardinality  that of the input; 1
//   Memory       two chunks and their states
//   Threads      one caller at a time; the function runs in no thread of ours
//   Checkpoint   the state before the oldest chunk of which rows are left, the
//                input's position there, and how many of its rows were given
//   Errors       as in scan: the state stays as it was. In reduce, any error is
//                the result
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakePythonScan(const plan::Scan& spec, OperatorPtr input,
                          OpContext& context);
OperatorOr MakePythonReduce(const plan::Reduce& spec, OperatorPtr input,
                            OpContext& context);

}  // namespace penstock::engine
