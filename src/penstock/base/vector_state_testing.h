// Whether registers are as vector_state.h wants them, for tests.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace penstock {

#if defined(__x86_64__)
// False where the processor cannot say.
__attribute__((target("xsave"))) inline bool AreUpperVectorsInUse() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kXgetbv1 = 1 << 2;
  if (__get_cpuid_count(0xd, 1, &a, &b, &c, &d) == 0 || (a & kXgetbv1) == 0) {
    return false;
  }
  constexpr unsigned long long kAvx = 1 << 2;
  return (_xgetbv(1) & kAvx) != 0;
}
#else
inline bool AreUpperVectorsInUse() { return false; }
#endif

}  // namespace penstock
