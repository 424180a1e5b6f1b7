// Where buffers begin in memory that is shared or sent.
#pragma once

#include <cstddef>

namespace penstock {

// Of regions, of encoded chunks and of each buffer in one.
inline constexpr size_t kAlignment = 64;

constexpr size_t RoundUp(size_t size, size_t to = kAlignment) {
  return (size + to - 1) / to * to;
}

}  // namespace penstock
