// A chunk as bytes: what frames, captured arrays and wires carry.
//
// Little-endian, 8-byte fields; every buffer starts at a multiple of 64 bytes
// from the beginning, so that arrays can lie directly on it.
//
//   header   u32 magic "PSK1", u32 columns, u64 rows, u64 bytes in all,
//            u64 offset of the errors (0: none), u64 number of errors
//   column   u8 dtype, u8 layout (0 dense, 1 ragged), u8 rank, 5 zero bytes,
//            u64 values offset, u64 values bytes,
//            u64 offset of the string starts (0: not strings),
//            u64 offset of the row dimensions (0: dense),
//            8 dimensions of 8 bytes (dense; unused ones are 0)
//   values   items one after another, rows in order; of strings, their bytes
//   starts   (items + 1) x u64 into the values: string i is [s[i], s[i+1])
//   dims     rows x rank x u64, ragged only
//   errors   each: u64 row, u32 code, u32 size, message, zeros to 8 bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/data/buffer.h"
#include "penstock/data/chunk.h"

namespace penstock {

// The largest rank that can be encoded; the plan's validation refuses more.
inline constexpr int kMaxRank = 8;

// Exactly what Encode() will write.
size_t EncodedSize(const Chunk& chunk);

// Writes `chunk` to `out`, which has room for EncodedSize(chunk) bytes and is
// 8-byte aligned. The lineage is left out.
void Encode(const Chunk& chunk, std::byte* out);

// The same at `out`, whose bytes [0, values_end) hold some of the chunk's own
// columns already: those stay where they are, and the rest is written before
// and after. Gives how many bytes it then has; nothing, and nothing is written,
// if they would be more than `room` or the head would reach into a column.
std::optional<size_t> EncodeAround(const Chunk& chunk, std::byte* out,
                                   size_t values_end, size_t room);

// The same as buffers that follow each other: columns of at least `least_bytes`
// bytes are the chunk's own, after everything else. They keep what they lie in.
std::vector<Buffer> EncodeApart(const Chunk& chunk, size_t least_bytes);
// How many bytes those columns have together.
size_t ApartBytes(const Chunk& chunk, size_t least_bytes);

// How many bytes the encoded chunk at `at` has, of which `chunk` was decoded,
// and which is as it was then. Nothing if `chunk` is another, or only a part of
// it; and of one with strings, ragged columns or errors, which are not looked
// for. Safe on any `room` bytes.
std::optional<size_t> FindEncoded(const Chunk& chunk, const std::byte* at,
                                  size_t room);

// Bytes before the first column.
size_t EncodedHeadSize(size_t columns);

// A chunk over `bytes`: no copy but for string references and row pointers.
// DataLoss if anything does not add up; safe on bytes from anywhere.
absl::StatusOr<Chunk> Decode(const Buffer& bytes);

}  // namespace penstock
