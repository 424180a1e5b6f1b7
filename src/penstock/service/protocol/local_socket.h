// What a worker and clients on its host say over its socket.
//
// A client connects to a Unix stream socket with an abstract name (its first
// byte is 0, and the name follows; WorkerBeat.local_socket has the name
// alone). Only processes of the same user are let in. All numbers are
// little-endian.
//
//   worker, once    u32 magic 0x31575350 ("PSW1"), u32 32,
//                   32 characters: the key of this connection
//   client          u32 kind, u32 0, u64 value
//                   kind 1: wants the descriptor of segment `value`
//                   kind 2: nobody looks at frame `value` any more
//   worker, to 1    u32 1, u32 segment, u64 bytes of the segment; its memfd
//                   comes along (SCM_RIGHTS). 0 bytes and no descriptor: there
//                   is no such segment.
#pragma once

#include <cstdint>

namespace penstock::service {

inline constexpr uint32_t kLocalMagic = 0x31575350;
inline constexpr uint32_t kLocalKeyBytes = 32;
struct LocalMessage {
  uint32_t kind;
  uint32_t segment;
  uint64_t value;
};
static_assert(sizeof(LocalMessage) == 16);
inline constexpr uint32_t kWantSegment = 1;
inline constexpr uint32_t kReleaseFrame = 2;

}  // namespace penstock::service
