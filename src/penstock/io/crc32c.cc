#include "penstock/io/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "penstock/base/vector_state.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace penstock::io {
namespace {

// From here on ISA-L's three-way loop is some three times as fast. Up to 64
// bytes the plain loop is; in between they are level, since the processor
// overlaps the plain loops of neighbouring records by itself.
constexpr size_t kLongBytes = 256;

uint32_t UpdateLong(uint32_t crc, std::string_view bytes) {
  constexpr size_t kMaxBytes = size_t{1} << 30;  // the library counts in int
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), kMaxBytes);
    auto* data =
        reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(n), crc);
    bytes.remove_prefix(n);
  }
  ClearUpperVectors();
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t UpdateShort(uint32_t crc,
                                                       std::string_view bytes) {
  const char* p = bytes.data();
  size_t n = bytes.size();
  uint64_t wide = crc;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; n > 0; ++p, --n) {
    crc = _mm_crc32_u8(crc, static_cast<unsigned char>(*p));
  }
  return crc;
}

const bool kHasCrcInstruction = __builtin_cpu_supports("sse4.2") != 0;
#else
uint32_t UpdateShort(uint32_t crc, std::string_view bytes) {
  return UpdateLong(crc, bytes);
}

constexpr bool kHasCrcInstruction = false;
#endif

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  constexpr uint32_t kStart = 0xffffffffU;
  if (kHasCrcInstruction && bytes.size() < kLongBytes) {
    return ~UpdateShort(kStart, bytes);
  }
  return ~UpdateLong(kStart, bytes);
}

}  // namespace penstock::io
