#include "penstock/service/client/unpack.h"

#include <lz4.h>
#include <zstd.h>

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/io/crc32c.h"

namespace penstock::service {

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("a frame came damaged: ", what, "; it is read again"));
}

absl::StatusOr<FrameHeader> ParseHeader(std::string_view bytes,
                                        uint32_t crc32c) {
  if (io::Crc32c(bytes) != crc32c) {
    return Damaged("the checksum of its header does not match");
  }
  FrameHeader header;
  if (!header.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Damaged("its header is not one");
  }
  return header;
}

absl::StatusOr<Buffer> Unpack(const FrameHeader& head, Buffer packed) {
  const uint64_t size = head.plain_bytes();
  const auto damaged = [&] {
    return absl::DataLossError(absl::StrCat("a frame must unpack to ", size,
                                            " bytes; got something else"));
  };
  if (head.compression() == COMPRESSION_NONE) {
    if (packed.size() != size) return damaged();
    return packed;
  }
  constexpr uint64_t kMaxLz4 = std::numeric_limits<int>::max();
  if (size > kMaxFrameBytes) return damaged();
  Buffer plain = Buffer::Allocate(size);
  switch (head.compression()) {
    case COMPRESSION_LZ4: {
      if (size > kMaxLz4 || packed.size() > kMaxLz4) return damaged();
      const int got = LZ4_decompress_safe(
          packed.As<char>(), plain.MutableAs<char>(),
          static_cast<int>(packed.size()), static_cast<int>(size));
      if (got < 0 || static_cast<uint64_t>(got) != size) return damaged();
      return plain;
    }
    case COMPRESSION_ZSTD: {
      const size_t got = ZSTD_decompress(plain.MutableAs<char>(), size,
                                         packed.data(), packed.size());
      if (ZSTD_isError(got) != 0 || got != size) return damaged();
      return plain;
    }
    default:
      return absl::UnimplementedError(
          absl::StrCat("a frame must be packed in a known way; got number ",
                       head.compression()));
  }
}

}  // namespace penstock::service
