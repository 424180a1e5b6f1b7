#include "penstock/base/hash.h"

#include <cstring>

namespace penstock {

uint64_t HashBytes(std::string_view bytes, uint64_t seed) {
  uint64_t hash = Combine(seed, bytes.size());
  const char* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    hash = Mix(hash ^ word);
  }
  uint64_t tail = 0;
  if (left > 0) std::memcpy(&tail, p, left);
  return Mix(hash ^ tail);
}

}  // namespace penstock
