// From plan to operators: one switch over every kind of node.
#pragma once

#include "penstock/engine/operator.h"
#include "penstock/plan.pb.h"

namespace penstock::engine {

// The operator of `node` over its inputs' operators.
OperatorOr BuildOperator(const plan::Node& node,
                         std::vector<OperatorPtr> inputs,
                         std::optional<int64_t> input_rows, OpContext& context);

}  // namespace penstock::engine
