// The inner loops of bilinear resizing, by the vectors of the processor that
// runs them. Results are the same on all of them, and without any.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock::functions {

// What two neighbours in a row of three-byte pixels are made of.
struct RgbPair {
  int32_t offset[2];    // of the lower pixels, in bytes
  uint8_t shuffle[16];  // from those 2 x 8 bytes to upper, lower, upper, …
  float lerp[8];        // each share four times
};

// Six floats for each pair, from the first on.
// REQUIRES: 8 bytes can be read at each offset; out has room for one float
// more.
void LerpRgbPairs(const uint8_t* row, const std::vector<RgbPair>& pairs,
                  float* out);

// out = top + (bottom - top) * share.
void LerpRows(const float* top, const float* bottom, float share, int64_t count,
              float* out);

}  // namespace penstock::functions
