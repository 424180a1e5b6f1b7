// Frames made smaller for slow networks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/worker.pb.h"

namespace penstock::service {

// The bytes in one lz4 block, or one zstd frame of level 1. Nothing if they
// would not be fewer.
std::optional<std::string> Compress(Compression compression,
                                    std::string_view bytes);

// Decides for one stream, from what it has seen: how fast the stream drains,
// and how fast and how well frames are compressed. A frame is compressed if it
// gets there earlier. Now and then the others are tried again, since both
// change. Not thread-safe.
class CompressionChoice final {
 public:
  // What the client can read; none: frames are sent as they are.
  explicit CompressionChoice(std::vector<Compression> allowed);

  // How to send the next frame.
  Compression Next();
  void OnCompressed(Compression compression, size_t plain_bytes,
                    size_t frame_bytes, int64_t nanos);
  // As many bytes have left while the stream was never without some to send.
  void OnDrained(size_t bytes, int64_t nanos);

 private:
  struct Seen {
    Compression compression;
    double nanos_per_byte = 0;  // 0: not tried yet
    double ratio = 0;           // bytes that are left of one
  };
  // Nanoseconds until a byte is there.
  double Cost(const Seen& seen) const;

  std::vector<Seen> seen_;
  double drain_nanos_per_byte_ = 0;
  uint64_t frames_ = 0;
};

}  // namespace penstock::service
