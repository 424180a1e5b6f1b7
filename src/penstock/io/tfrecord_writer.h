// Writing of TFRecord files; tfrecord_reader.h tells the format.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/io/byte_stream.h"
#include "penstock/io/file_system.h"

namespace penstock::io {

// One caller at a time. The first error is returned by every later call.
class TfRecordWriter {
 public:
  virtual ~TfRecordWriter() = default;
  virtual absl::Status Write(std::string_view record) = 0;
  // Writes what is still held back and ends the file. Without it the file is
  // truncated, and readers will say so. No Write after it.
  virtual absl::Status Close() = 0;
};

// Makes the file `path`, or empties the one that is there.
absl::StatusOr<std::unique_ptr<TfRecordWriter>> CreateTfRecordWriter(
    FileSystem& files, std::string_view path,
    Compression compression = Compression::kNone);

}  // namespace penstock::io
