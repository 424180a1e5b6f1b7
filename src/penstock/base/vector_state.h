// What calls into hand-written assembler must clean up.
#pragma once

namespace penstock {

#if defined(__x86_64__)
namespace internal {
inline const bool kHasAvx = __builtin_cpu_supports("avx") != 0;
}  // namespace internal

// To be called after functions of ISA-L: some of them (crc32_iscsi with
// AVX-512) leave the upper halves of vector registers in use. Every step from
// older to newer vector instructions then costs a hundred cycles, in this
// thread and for ever: a sine took 35 times as long after one record was read.
inline void ClearUpperVectors() {
  if (internal::kHasAvx) asm volatile("vzeroupper" ::: "memory");
}
#else
inline void ClearUpperVectors() {}
#endif

}  // namespace penstock
