#include "penstock/io/zstd_stream.h"

#include <zstd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"

namespace penstock::io {
namespace {

constexpr int kMaxWindowLog = 27;  // 128 MiB

class ZstdStream final : public ByteStream {
 public:
  ZstdStream(std::unique_ptr<ByteStream> compressed, std::string path,
             int64_t skip_bytes, std::shared_ptr<BlockPool> block_pool)
      : path_(std::move(path)),
        start_offset_(skip_bytes),
        block_pool_(std::move(block_pool)),
        compressed_(std::move(compressed)),
        num_to_skip_(skip_bytes),
        decoder_(ZSTD_createDCtx()) {
    if (decoder_ == nullptr ||
        ZSTD_isError(ZSTD_DCtx_setParameter(decoder_.get(), ZSTD_d_windowLogMax,
                                            kMaxWindowLog))) {
      error_ = absl::ResourceExhaustedError(
          absl::StrCat("no memory to decode zstd data: ", path_));
    }
  }

  absl::StatusOr<std::optional<Block>> Next(
      std::function<void()> wake) override {
    for (;;) {
      PENSTOCK_ASSIGN_OR_RETURN(std::optional<Block> block, Decode(wake));
      if (!block.has_value()) return block;
      if (block->bytes.empty()) {
        if (num_to_skip_ == 0) return block;
        return absl::OutOfRangeError(absl::StrCat(
            "expected at least ", start_offset_, " decoded bytes; found ",
            start_offset_ - num_to_skip_, ": ", path_));
      }
      const auto skipped = static_cast<size_t>(std::min<int64_t>(
          num_to_skip_, static_cast<int64_t>(block->bytes.size())));
      num_to_skip_ -= static_cast<int64_t>(skipped);
      block->bytes.remove_prefix(skipped);
      if (!block->bytes.empty()) return block;
    }
  }

  std::optional<int64_t> decoded_size() const override { return std::nullopt; }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* decoder) const { ZSTD_freeDCtx(decoder); }
  };

  // Up to one block of decoded bytes; empty at the end.
  absl::StatusOr<std::optional<Block>> Decode(
      const std::function<void()>& wake) {
    if (!error_.ok()) return error_;
    std::shared_ptr<char> memory;
    size_t size = 0;
    while (size < block_pool_->block_bytes()) {
      if (input_.bytes.empty() && !is_output_pending_) {
        // With bytes to return there is nobody to wake: the next call asks.
        absl::StatusOr<std::optional<Block>> input =
            compressed_->Next(size == 0 ? wake : std::function<void()>());
        if (!input.ok()) {
          error_ = input.status();
          break;
        }
        if (!input->has_value()) {
          if (size == 0) return std::nullopt;
          break;
        }
        input_ = **std::move(input);
        if (input_.bytes.empty()) {
          if (!is_between_frames_) {
            error_ = absl::DataLossError(
                absl::StrCat("truncated zstd data: the file ends at byte ",
                             compressed_offset_, ", inside a frame: ", path_));
          }
          break;
        }
      }
      if (memory == nullptr) {
        memory = block_pool_->Allocate(block_pool_->block_bytes());
      }
      size += Run(memory.get() + size, block_pool_->block_bytes() - size);
      if (!error_.ok()) break;
    }
    if (size == 0 && !error_.ok()) return error_;
    const char* bytes = memory.get();
    return Block{.owner = std::move(memory), .bytes = {bytes, size}};
  }

  // Runs the decoder over what input there is; returns the bytes written.
  size_t Run(char* dst, size_t capacity) {
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

  const std::string path_;
  const int64_t start_offset_;
  const std::shared_ptr<BlockPool> block_pool_;

  const std::unique_ptr<ByteStream> compressed_;
  int64_t num_to_skip_;
  Block input_;                    // what is left of the block being decoded
  int64_t compressed_offset_ = 0;  // of the first byte not yet taken in
  const std::unique_ptr<ZSTD_DCtx, Free> decoder_;
  bool is_between_frames_ = true;
  bool is_output_pending_ = false;  // the decoder may hold more output
  absl::Status error_;
};

}  // namespace

std::unique_ptr<ByteStream> MakeZstdStream(
    std::unique_ptr<ByteStream> compressed, std::string path,
    int64_t skip_bytes, std::shared_ptr<BlockPool> block_pool) {
  return std::make_unique<ZstdStream>(std::move(compressed), std::move(path),
                                      skip_bytes, std::move(block_pool));
}

}  // namespace penstock::io
