#include "penstock/data/copy_past_caches.h"

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace penstock {
namespace {

// Frames wait in a queue of several, so of this size on they are in no cache of
// a core's own when they are read.
constexpr size_t kLeastBytes = size_t{4} << 20;

}  // namespace

void CopyPastCaches(std::byte* to, const std::byte* from, size_t bytes) {
#if defined(__SSE2__)
  if (bytes >= kLeastBytes) {
    constexpr size_t kLine = 64;
    const size_t head =
        (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine;
    std::memcpy(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    for (; bytes >= kLine; bytes -= kLine, to += kLine, from += kLine) {
      auto* out = reinterpret_cast<__m128i*>(to);
      const auto* in = reinterpret_cast<const __m128i*>(from);
      const __m128i a = _mm_loadu_si128(in);
      const __m128i b = _mm_loadu_si128(in + 1);
      const __m128i c = _mm_loadu_si128(in + 2);
      const __m128i d = _mm_loadu_si128(in + 3);
      _mm_stream_si128(out, a);
      _mm_stream_si128(out + 1, b);
      _mm_stream_si128(out + 2, c);
      _mm_stream_si128(out + 3, d);
    }
    _mm_sfence();
  }
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace penstock
