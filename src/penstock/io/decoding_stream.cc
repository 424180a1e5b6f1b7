#include "penstock/io/decoding_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"

namespace penstock::io {

DecodingStream::DecodingStream(std::unique_ptr<ByteStream> compressed,
                               std::string path, int64_t skip_bytes,
                               std::shared_ptr<BlockPool> block_pool)
    : path_(std::move(path)),
      start_offset_(skip_bytes),
      block_pool_(std::move(block_pool)),
      compressed_(std::move(compressed)),
      num_to_skip_(skip_bytes) {}

absl::StatusOr<std::optional<Block>> DecodingStream::Next(
    std::function<void()> wake) {
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

absl::StatusOr<std::optional<Block>> DecodingStream::Decode(
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
      num_taken_ = 0;
      if (input_.bytes.empty()) {
        error_ = AtEnd();
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

}  // namespace penstock::io
