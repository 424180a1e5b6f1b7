// Values of one dtype as another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "penstock/data/column.h"
#include "penstock/data/dtype.h"

namespace penstock::functions {

// As numpy's astype: truncation to integers (wrapping between them; what does
// not fit is whatever the processor makes of it), rounding to even to floats,
// nonzero to bool, the real part of complex.
// REQUIRES: neither dtype is string, or both are.
void CastItems(DType from, const std::byte* in, DType to, std::byte* out,
               int64_t count);

// The rows of `column`, of any layout; itself if it has that dtype.
Column Cast(const Column& column, DType to);

}  // namespace penstock::functions
