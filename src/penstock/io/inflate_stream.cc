#include "penstock/io/inflate_stream.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"

namespace penstock::io {
namespace {

const char* Name(Compression compression) {
  return compression == Compression::kGzip ? "gzip" : "zlib";
}

const char* Reason(int code) {
  switch (code) {
    case ISAL_INVALID_WRAPPER:
      return "not a valid header";
    case ISAL_UNSUPPORTED_METHOD:
      return "unknown compression method";
    case ISAL_INCORRECT_CHECKSUM:
      return "wrong checksum";
    case ISAL_NEED_DICT:
      return "needs a preset dictionary";
    case ISAL_INVALID_BLOCK:
      return "invalid block";
    case ISAL_INVALID_SYMBOL:
      return "invalid symbol";
    case ISAL_INVALID_LOOKBACK:
      return "invalid distance";
    default:
      return "invalid data";
  }
}

class InflateStream final : public ByteStream {
 public:
  InflateStream(std::unique_ptr<ByteStream> compressed, Compression compression,
                std::string path, int64_t skip_bytes,
                std::shared_ptr<BlockPool> block_pool)
      : compression_(compression),
        path_(std::move(path)),
        start_offset_(skip_bytes),
        block_pool_(std::move(block_pool)),
        compressed_(std::move(compressed)),
        num_to_skip_(skip_bytes) {
    isal_inflate_init(&state_);
    StartMember();
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
  void StartMember() {
    isal_inflate_reset(&state_);
    state_.crc_flag =
        compression_ == Compression::kGzip ? ISAL_GZIP : ISAL_ZLIB;
    is_between_members_ = true;
  }

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
        num_taken_ = 0;
        if (input_.bytes.empty()) {
          if (!is_between_members_) error_ = Truncated();
          break;
        }
      }
      if (memory == nullptr) {
        memory = block_pool_->Allocate(block_pool_->block_bytes());
      }
      size += Inflate(memory.get() + size, block_pool_->block_bytes() - size);
      if (!error_.ok()) break;
    }
    if (size == 0 && !error_.ok()) return error_;
    const char* bytes = memory.get();
    return Block{.owner = std::move(memory), .bytes = {bytes, size}};
  }

  // Runs the decoder over what input there is; returns the bytes written.
  size_t Inflate(char* dst, size_t capacity) {
    const auto before = static_cast<uint32_t>(
        std::min<size_t>(input_.bytes.size(), size_t{1} << 30));
    const auto room =
        static_cast<uint32_t>(std::min<size_t>(capacity, size_t{1} << 30));
    state_.next_in =
        reinterpret_cast<uint8_t*>(const_cast<char*>(input_.bytes.data()));
    state_.avail_in = before;
    state_.next_out = reinterpret_cast<uint8_t*>(dst);
    state_.avail_out = room;
    if (before > 0) is_between_members_ = false;
    const int code = isal_inflate(&state_);
    const uint32_t taken = before - state_.avail_in;
    input_.bytes.remove_prefix(taken);
    num_taken_ += taken;
    compressed_offset_ += taken;
    const size_t written = room - state_.avail_out;
    is_output_pending_ = state_.avail_out == 0;
    if (code != ISAL_DECOMP_OK) {
      error_ = Corrupt(Reason(code));
    } else if (state_.block_state == ISAL_BLOCK_FINISH) {
      is_output_pending_ = false;
      FinishMember();
    } else if (before > 0 && taken == 0 && written == 0) {
      error_ = Corrupt("no progress");
    }
    return written;
  }

  // The decoder takes input in words, and may hold a few bytes from behind the
  // end of a member; they begin the next one.
  void FinishMember() {
    std::string held;
    for (; state_.read_in_length >= 8; state_.read_in_length -= 8) {
      held.push_back(static_cast<char>(state_.read_in));
      state_.read_in >>= 8;
    }
    held.append(reinterpret_cast<const char*>(state_.tmp_in_buffer),
                static_cast<size_t>(state_.tmp_in_size));
    GiveBack(std::move(held));
    StartMember();
  }

  void GiveBack(std::string held) {
    compressed_offset_ -= static_cast<int64_t>(held.size());
    if (held.size() <= num_taken_) {
      input_.bytes = {input_.bytes.data() - held.size(),
                      input_.bytes.size() + held.size()};
      num_taken_ -= held.size();
      return;
    }
    held.append(input_.bytes);
    auto joined = std::make_shared<const std::string>(std::move(held));
    input_ = {.owner = joined, .bytes = *joined};
    num_taken_ = 0;
  }

  absl::Status Truncated() const {
    return absl::DataLossError(absl::StrCat(
        "truncated ", Name(compression_), " data: the file ends at byte ",
        compressed_offset_, ", inside a compressed member: ", path_));
  }

  absl::Status Corrupt(const char* reason) const {
    return absl::DataLossError(absl::StrCat("corrupt ", Name(compression_),
                                            " data (", reason, ") before byte ",
                                            compressed_offset_, ": ", path_));
  }

  const Compression compression_;
  const std::string path_;
  const int64_t start_offset_;
  const std::shared_ptr<BlockPool> block_pool_;

  const std::unique_ptr<ByteStream> compressed_;
  int64_t num_to_skip_;
  Block input_;                    // what is left of the block being decoded
  size_t num_taken_ = 0;           // bytes of that block before `input_`
  int64_t compressed_offset_ = 0;  // of the first byte not yet taken in
  inflate_state state_;
  bool is_between_members_ = true;
  bool is_output_pending_ = false;  // the decoder may hold more output
  absl::Status error_;
};

}  // namespace

std::unique_ptr<ByteStream> MakeInflateStream(
    std::unique_ptr<ByteStream> compressed, Compression compression,
    std::string path, int64_t skip_bytes,
    std::shared_ptr<BlockPool> block_pool) {
  return std::make_unique<InflateStream>(std::move(compressed), compression,
                                         std::move(path), skip_bytes,
                                         std::move(block_pool));
}

}  // namespace penstock::io
