// A compressed file's decoded bytes, whatever decodes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/io/block.h"
#include "penstock/io/byte_stream.h"

namespace penstock::io {

// Takes blocks of compressed bytes in and fills blocks with decoded ones, the
// first `skip_bytes` left out. The decoder itself is Run().
class DecodingStream : public ByteStream {
 public:
  absl::StatusOr<std::optional<Block>> Next(std::function<void()> wake) final;
  std::optional<int64_t> decoded_size() const final { return std::nullopt; }

 protected:
  DecodingStream(std::unique_ptr<ByteStream> compressed, std::string path,
                 int64_t skip_bytes, std::shared_ptr<BlockPool> block_pool);

  // Runs the decoder over input_, whose bytes it takes; returns the bytes
  // written, and sets is_output_pending_, or error_.
  virtual size_t Run(char* dst, size_t capacity) = 0;
  // What it means that the file ends here: DataLoss inside of something.
  virtual absl::Status AtEnd() const = 0;

  const std::string path_;
  Block input_;                     // what is left of the block being decoded
  size_t num_taken_ = 0;            // bytes of that block before `input_`
  int64_t compressed_offset_ = 0;   // of the first byte not yet taken in
  bool is_output_pending_ = false;  // the decoder may hold more output
  absl::Status error_;

 private:
  // Up to one block of decoded bytes; empty at the end.
  absl::StatusOr<std::optional<Block>> Decode(
      const std::function<void()>& wake);

  const int64_t start_offset_;
  const std::shared_ptr<BlockPool> block_pool_;
  const std::unique_ptr<ByteStream> compressed_;
  int64_t num_to_skip_;
};

}  // namespace penstock::io
