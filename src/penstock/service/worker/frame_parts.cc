#include "penstock/service/worker/frame_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/data/dtype.h"
#include "penstock/data/encode.h"

namespace penstock::service {
namespace {

// Chunks of small rows are views into larger ones more often than not, which
// they would keep from being freed.
bool HasLargeRows(const Chunk& chunk) {
  return std::ranges::any_of(chunk.columns, [](const Column& column) {
    return column.is_dense() && column.dtype() != DType::kString &&
           static_cast<size_t>(column.row_bytes()) >= kSumBlockBytes;
  });
}

}  // namespace

std::shared_ptr<FrameParts> MakeParts(const Chunk& chunk, const Buffer& lineage,
                                      BlockSums sums) {
  if (!HasLargeRows(chunk)) return nullptr;
  // What is mostly copied may as well be as a whole.
  const size_t apart = ApartBytes(chunk, kSumBlockBytes);
  if (apart * 2 < EncodedSize(chunk)) return nullptr;
  auto frame = std::make_shared<FrameParts>();
  frame->parts = EncodeApart(chunk, kSumBlockBytes);
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
