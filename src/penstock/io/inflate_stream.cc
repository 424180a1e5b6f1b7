#include "penstock/io/inflate_stream.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/vector_state.h"
#include "penstock/io/decoding_stream.h"

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

class InflateStream final : public DecodingStream {
 public:
  InflateStream(std::unique_ptr<ByteStream> compressed, Compression compression,
                std::string path, int64_t skip_bytes,
                std::shared_ptr<BlockPool> block_pool)
      : DecodingStream(std::move(compressed), std::move(path), skip_bytes,
                       std::move(block_pool)),
        compression_(compression) {
    isal_inflate_init(&state_);
    StartMember();
  }

 private:
  void StartMember() {
    isal_inflate_reset(&state_);
    state_.crc_flag =
        compression_ == Compression::kGzip ? ISAL_GZIP : ISAL_ZLIB;
    is_between_members_ = true;
  }

  size_t Run(char* dst, size_t capacity) override {
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
    ClearUpperVectors();
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

  absl::Status AtEnd() const override {
    if (is_between_members_) return absl::OkStatus();
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
  inflate_state state_;
  bool is_between_members_ = true;
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
