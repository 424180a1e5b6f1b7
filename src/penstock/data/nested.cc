#include "penstock/data/nested.h"

#include <cstring>
#include <memory>

#include "penstock/data/align.h"
#include "penstock/data/encode.h"

namespace penstock {

Column EncodeNested(absl::Span<const Chunk> chunks) {
  size_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes += RoundUp(EncodedSize(chunk));
  Buffer memory = Buffer::Allocate(bytes);
  Buffer refs = Buffer::Allocate(chunks.size() * sizeof(StringRef));
  std::byte* at = memory.MutableAs<std::byte>();
  // Gaps between a chunk's buffers count too where strings are compared.
  if (bytes > 0) std::memset(at, 0, bytes);
  StringRef* ref = refs.MutableAs<StringRef>();
  for (const Chunk& chunk : chunks) {
    const size_t size = EncodedSize(chunk);
    Encode(chunk, at);
    *ref++ = {reinterpret_cast<const char*>(at), size};
    at += RoundUp(size);
  }
  return Column::Dense(DType::kString, {}, static_cast<int64_t>(chunks.size()),
                       std::move(refs), {memory.owner()});
}

absl::StatusOr<Chunk> DecodeNested(const Column& rows) {
  if (rows.rows() != 1 || rows.rank() != 0 || rows.dtype() != DType::kString) {
    return absl::InvalidArgumentError(
        "the rows of a dataset must be one scalar string");
  }
  const StringRef text = *rows.Row<StringRef>(0);
  if (reinterpret_cast<uintptr_t>(text.data) % 8 == 0) {
    return Decode(
        Buffer(std::make_shared<const Column>(rows), text.data, text.size));
  }
  Buffer copy = Buffer::Allocate(text.size);
  if (text.size > 0) {
    std::memcpy(copy.MutableAs<char>(), text.data, text.size);
  }
  return Decode(copy);
}

}  // namespace penstock
