#include "penstock/main/freed_memory.h"

#include <malloc.h>

#include <algorithm>

namespace penstock {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

}  // namespace

void KeepFreedMemory(int64_t memory_bytes) {
  const auto part = [memory_bytes](int64_t divisor, int64_t most) {
    return static_cast<int>(std::clamp(memory_bytes / divisor, kMiB, most));
  };
  // Each thread keeps its own, and what lies between pieces in use stays, too.
  mallopt(M_MMAP_THRESHOLD, part(256, 64 * kMiB));
  mallopt(M_TRIM_THRESHOLD, part(32, 256 * kMiB));
  mallopt(M_TOP_PAD, part(256, 4 * kMiB));
}

}  // namespace penstock
