#include "penstock/service/worker/frame_parts.h"

#include <cstring>
#include <utility>

#include "penstock/data/encode.h"
#include "penstock/data/frame_memory.h"

namespace penstock::service {

std::shared_ptr<FrameParts> MakeParts(const Chunk& chunk, const Buffer& lineage,
                                      BlockSums sums) {
  // What is mostly copied may as well be as a whole.
  const size_t apart = ApartBytes(chunk, kMinReservedBytes);
  if (apart == 0 || apart * 2 < EncodedSize(chunk)) return nullptr;
  auto frame = std::make_shared<FrameParts>();
  frame->parts = EncodeApart(chunk, kMinReservedBytes);
  for (const Buffer& part : frame->parts) frame->chunk_bytes += part.size();
  frame->bytes = frame->chunk_bytes + lineage.size();
  if (lineage.size() > 0) frame->parts.push_back(lineage);
  frame->sums = std::move(sums);
  return frame;
}

Buffer Joined(const FrameParts& frame) {
  Buffer joined = Buffer::Allocate(frame.bytes);
  auto* at = joined.MutableAs<std::byte>();
  for (const Buffer& part : frame.parts) {
    std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  return joined;
}

}  // namespace penstock::service
