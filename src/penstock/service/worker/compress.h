// Frames made smaller for slow networks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "penstock/worker.pb.h"

namespace penstock::service {

// The bytes in one lz4 block, or one zstd frame of level 1. Nothing if they
// would not be fewer.
std::optional<std::string> Compress(Compression compression,
                                    std::string_view bytes);

// Decides for the streams of one link, from what was seen: how fast the link
// drains, and how fast and how well frames are compressed. Frames are
// compressed if more of them get there. Now and then the others are tried
// again, since both change. Not thread-safe.
class CompressionChoice final {
 public:
  // How to send the next frame, of what its client can read; none: as it is.
  // `parallel`: frames that can be compressed at once.
  Compression Next(absl::Span<const Compression> allowed, uint32_t parallel);
  // One frame took so long, with all that went on beside it.
  void OnCompressed(Compression compression, size_t plain_bytes,
                    size_t frame_bytes, int64_t nanos);
  // As many bytes have left while there were always some to send.
  void OnDrained(size_t bytes, int64_t nanos);
  // 0: not seen yet.
  double drain_bytes_per_second() const;

 private:
  struct Seen {
    Compression compression;
    double nanos_per_byte;  // 0: not tried yet
    double ratio;           // bytes that are left of one
  };
  // Nanoseconds of a byte where it takes longest.
  double Cost(const Seen& seen, uint32_t parallel) const;

  std::array<Seen, 2> seen_ = {
      {{COMPRESSION_LZ4, 0, 0}, {COMPRESSION_ZSTD, 0, 0}}};
  double drain_nanos_per_byte_ = 0;
  uint64_t frames_ = 0;
};

}  // namespace penstock::service
