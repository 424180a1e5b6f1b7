#include "penstock/io/tfrecord_writer.h"

#include <cstring>
#include <string>
#include <utility>

#include "penstock/base/status.h"
#include "penstock/io/crc32c.h"
#include "penstock/io/deflate_file.h"

namespace penstock::io {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;

template <typename Number>
void AppendNumber(Number number, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

class Writer final : public TfRecordWriter {
 public:
  explicit Writer(std::unique_ptr<WritableFile> file)
      : file_(std::move(file)) {}

  absl::Status Write(std::string_view record) override {
    PENSTOCK_RETURN_IF_ERROR(error_);
    const uint64_t length = record.size();
    AppendNumber(length, buffer_);
    AppendNumber(
        MaskedCrc32c({reinterpret_cast<const char*>(&length), sizeof(length)}),
        buffer_);
    buffer_.append(record);
    AppendNumber(MaskedCrc32c(record), buffer_);
    if (buffer_.size() < kBufferBytes) return absl::OkStatus();
    return Flush();
  }

  absl::Status Close() override {
    PENSTOCK_RETURN_IF_ERROR(error_);
    PENSTOCK_RETURN_IF_ERROR(Flush());
    error_ = file_->Close();
    return error_;
  }

 private:
  absl::Status Flush() {
    error_ = file_->Append(buffer_);
    buffer_.clear();
    return error_;
  }

  const std::unique_ptr<WritableFile> file_;
  std::string buffer_;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TfRecordWriter>> CreateTfRecordWriter(
    FileSystem& files, std::string_view path, Compression compression) {
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                            files.Create(path));
  PENSTOCK_ASSIGN_OR_RETURN(file,
                            MakeDeflateFile(std::move(file), compression));
  return std::make_unique<Writer>(std::move(file));
}

}  // namespace penstock::io
