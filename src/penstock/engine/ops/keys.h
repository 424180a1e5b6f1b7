// Elements with their keys: what grouping begins with.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/data/column.h"
#include "penstock/engine/operator.h"

namespace penstock::engine {

// Values of a column of integer scalars of any dtype; 0 for what is none.
void ToIntegers(const Column& column, std::vector<int64_t>& integers);

// The input's elements with the key that `key` gives them as their last
// component, an int64; after that, if there is `size`, a function of the key,
// what it gives. Errors of either are the element's.
//
// For functions that run as Python; others need no pass of their own.
OperatorOr MakeKeys(const plan::Function& key, const plan::Function* size,
                    OperatorPtr input, OpContext& context);

}  // namespace penstock::engine
