// Functions of float32, by the vectors of the processor that runs them.
//
// Computed as float64 and rounded once, so that an item's result hangs neither
// on its place nor, but for one in many millions, on the processor: it is the
// float32 that is nearest to the true value. The standard library's own, one by
// one, are slower and up to one unit in the last place away from it.
#pragma once

#include <cstdint>

namespace penstock::functions {

// out[i] = f(in[i]); `in` may be `out`.
void SinFloats(const float* in, float* out, int64_t count);
void CosFloats(const float* in, float* out, int64_t count);
void TanhFloats(const float* in, float* out, int64_t count);
void ArctanFloats(const float* in, float* out, int64_t count);
void Log2Floats(const float* in, float* out, int64_t count);
void Log10Floats(const float* in, float* out, int64_t count);
void Log1pFloats(const float* in, float* out, int64_t count);
void Expm1Floats(const float* in, float* out, int64_t count);

}  // namespace penstock::functions
