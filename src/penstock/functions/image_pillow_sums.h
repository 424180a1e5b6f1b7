// Weighted sums of bytes with 22 bits of precision: what PillowResizer is made
// of, with the processor's vector units.
#pragma once

#include <cstdint>

namespace penstock::functions {

inline constexpr int kPillowBits = 22;  // after the point of a weight
// Rows that are summed along x at once.
inline constexpr int kPillowRows = 4;
// A weight has so many bits below its high part.
inline constexpr int kPillowLowBits = 12;

// The weights of two inputs that follow one another, in two parts each, since
// products of 16 bits are what processors do many of at once.
struct PillowPair {
  int16_t high[2];
  int16_t low[2];
};

// What an output is made of: `pairs` of weights from `first` on, for the inputs
// from `start` on.
struct PillowRun {
  int32_t start;
  int32_t first;
  int32_t pairs;
};

// Sums along x, of pixels of 3 bytes: output i of row r goes to
// out[r] + 3 * i, which has a byte more. Rows have kPillowSlack bytes more than
// their pixels.
void SumRgb(const uint8_t* const rows[kPillowRows], const PillowRun* runs,
            const PillowPair* weights, int64_t outputs,
            uint8_t* const out[kPillowRows]);
inline constexpr int kPillowSlack = 16;

// The same of pixels of one byte, and of one row. Nothing is read beyond runs.
void SumGray(const uint8_t* row, const PillowRun* runs,
             const PillowPair* weights, int64_t outputs, uint8_t* out);

// Sums along y: one output row of `bytes`, from rows that are `row_bytes`
// apart, `rows` being the run's first. All rows are as long as the next
// multiple of 64.
void SumRows(const uint8_t* rows, int64_t row_bytes, const PillowRun& run,
             const PillowPair* weights, int64_t bytes, uint8_t* out);

}  // namespace penstock::functions
