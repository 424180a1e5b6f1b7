// Mixing of 64-bit words: lineage ids, random keys and fingerprints.
//
// The values are part of what users see (a seed gives the same stream on every
// machine and in every version), so these functions never change.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock {

// A bijective scramble of one word (the finaliser of SplitMix64).
constexpr uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Order matters: Combine(a, b) != Combine(b, a).
constexpr uint64_t Combine(uint64_t seed, uint64_t value) {
  return Mix(seed ^ Mix(value ^ 0x2545f4914f6cdd1dULL));
}

// A 64-bit hash of bytes, equal on every machine and in every version.
uint64_t HashBytes(std::string_view bytes, uint64_t seed = 0);

}  // namespace penstock
