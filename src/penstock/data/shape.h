// The dimensions of one row's value.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace penstock {

using Shape = absl::InlinedVector<int64_t, 4>;

// 1 for a scalar. REQUIRES: no overflow (specs and decoders check that).
inline int64_t NumItems(absl::Span<const int64_t> shape) {
  int64_t items = 1;
  for (int64_t dim : shape) items *= dim;
  return items;
}

// "(2, 3)", "(2,)", "()": as numpy prints a shape.
std::string ToString(absl::Span<const int64_t> shape);

}  // namespace penstock
