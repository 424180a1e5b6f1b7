#include "penstock/data/compact.h"

#include <cstddef>

#include "penstock/data/buffer.h"
#include "penstock/data/encode.h"

namespace penstock {

absl::StatusOr<Chunk> Compact(const Chunk& chunk) {
  Buffer bytes = Buffer::Allocate(EncodedSize(chunk));
  Encode(chunk, bytes.MutableAs<std::byte>());
  return Decode(bytes);
}

}  // namespace penstock
