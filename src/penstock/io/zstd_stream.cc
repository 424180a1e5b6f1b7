#include "penstock/io/zstd_stream.h"

#include <zstd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/io/decoding_stream.h"

namespace penstock::io {
namespace {

constexpr int kMaxWindowLog = 27;  // 128 MiB

class ZstdStream final : public DecodingStream {
 public:
  ZstdStream(std::unique_ptr<ByteStream> compressed, std::string path,
             int64_t skip_bytes, std::shared_ptr<BlockPool> block_pool)
      : DecodingStream(std::move(compressed), std::move(path), skip_bytes,
                       std::move(block_pool)),
        decoder_(ZSTD_createDCtx()) {
    if (decoder_ == nullptr ||
        ZSTD_isError(ZSTD_DCtx_setParameter(decoder_.get(), ZSTD_d_windowLogMax,
                                            kMaxWindowLog))) {
      error_ = absl::ResourceExhaustedError(
          absl::StrCat("no memory to decode zstd data: ", path_));
    }
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* decoder) const { ZSTD_freeDCtx(decoder); }
  };

  absl::Status AtEnd() const override {
    if (is_between_frames_) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("truncated zstd data: the file ends at byte ",
                     compressed_offset_, ", inside a frame: ", path_));
  }

  size_t Run(char* dst, size_t capacity) override {
    ZSTD_inBuffer in = {input_.bytes.data(), input_.bytes.size(), 0};
    ZSTD_outBuffer out = {dst, capacity, 0};
    const size_t code = ZSTD_decompressStream(decoder_.get(), &out, &in);
    input_.bytes.remove_prefix(in.pos);
    compressed_offset_ += static_cast<int64_t>(in.pos);
    if (ZSTD_isError(code)) {
      error_ = absl::DataLossError(
          absl::StrCat("corrupt zstd data (", ZSTD_getErrorName(code),
                       ") before byte ", compressed_offset_, ": ", path_));
      return out.pos;
    }
    // Zero says that a frame is complete and all of it was given.
    is_between_frames_ = code == 0;
    is_output_pending_ = code != 0 && out.pos == out.size;
    return out.pos;
  }

  const std::unique_ptr<ZSTD_DCtx, Free> decoder_;
  bool is_between_frames_ = true;
};

}  // namespace

std::unique_ptr<ByteStream> MakeZstdStream(
    std::unique_ptr<ByteStream> compressed, std::string path,
    int64_t skip_bytes, std::shared_ptr<BlockPool> block_pool) {
  return std::make_unique<ZstdStream>(std::move(compressed), std::move(path),
                                      skip_bytes, std::move(block_pool));
}

}  // namespace penstock::io
