#include "penstock/io/deflate_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "penstock/base/status.h"

namespace penstock::io {
namespace {

class DeflateFile final : public WritableFile {
 public:
  explicit DeflateFile(std::unique_ptr<WritableFile> file)
      : file_(std::move(file)) {}
  ~DeflateFile() override { deflateEnd(&stream_); }

  absl::Status Init(Compression compression) {
    constexpr int kWindowBits = 15;
    constexpr int kGzipWrapper = 16;
    constexpr int kMemoryLevel = 8;
    const int bits =
        kWindowBits + (compression == Compression::kGzip ? kGzipWrapper : 0);
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits,
                     kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
      return absl::ResourceExhaustedError("no memory for a compressor");
    }
    return absl::OkStatus();
  }

  absl::Status Append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const size_t n = std::min(bytes.size(), size_t{1} << 30);
      PENSTOCK_RETURN_IF_ERROR(Deflate(bytes.substr(0, n), Z_NO_FLUSH));
      bytes.remove_prefix(n);
    }
    return absl::OkStatus();
  }

  absl::Status Close() override {
    PENSTOCK_RETURN_IF_ERROR(Deflate({}, Z_FINISH));
    return file_->Close();
  }

 private:
  absl::Status Deflate(std::string_view bytes, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      deflate(&stream_, flush);
      PENSTOCK_RETURN_IF_ERROR(
          file_->Append({buffer_.data(), buffer_.size() - stream_.avail_out}));
    } while (stream_.avail_out == 0);
    return absl::OkStatus();
  }

  const std::unique_ptr<WritableFile> file_;
  z_stream stream_ = {};
  std::array<char, size_t{64} << 10> buffer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WritableFile>> MakeDeflateFile(
    std::unique_ptr<WritableFile> file, Compression compression) {
  if (compression == Compression::kNone) return file;
  if (compression == Compression::kZstd) {
    return absl::InvalidArgumentError(
        "files are written plain, gzip or zlib; got zstd");
  }
  auto deflated = std::make_unique<DeflateFile>(std::move(file));
  PENSTOCK_RETURN_IF_ERROR(deflated->Init(compression));
  return deflated;
}

}  // namespace penstock::io
