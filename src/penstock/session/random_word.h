// A word that nobody else has drawn.
#pragma once

#include <sys/random.h>

#include <cstdint>

namespace penstock::session {

// Never 0, which means none.
inline uint64_t RandomWord() {
  uint64_t word = 0;
  while (getrandom(&word, sizeof(word), 0) != sizeof(word)) {
  }
  return word | 1;
}

}  // namespace penstock::session
