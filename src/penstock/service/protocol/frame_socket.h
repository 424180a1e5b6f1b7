// What goes over a worker's frame socket: a TCP connection beside gRPC's, for
// bytes that nobody needs to look at on the way. Workers have one where gRPC's
// connections are not encrypted either.
//
//   worker, first   u32 magic, u32 bytes of a key, the key: what the client
//                   shows in ReadRequest.frame_key of as many readings as it
//                   likes, each with a number of its own
//   worker, then    u64 number of a reading, u32 bytes of a header, u32 CRC32C
//                   of it; the FrameHeader; `piece_bytes` bytes of the frame
//   client          nothing: it asks over gRPC
//
// All that a reading with a key sends comes this way, and nothing over gRPC but
// how it ended. A client that has had the end of the bundle ends its side of
// the call, and then the worker does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::service {

inline constexpr uint32_t kFrameMagic = 0x31465350;
inline constexpr uint32_t kFrameKeyBytes = 32;
// No piece is larger: it should still be at hand in a cache when its sum is
// made, on both sides.
inline constexpr size_t kFramePieceBytes = size_t{512} << 10;
struct PieceStart {
  uint64_t reading;
  uint32_t header_bytes;
  uint32_t header_crc32c;
};
static_assert(sizeof(PieceStart) == 16);

}  // namespace penstock::service
