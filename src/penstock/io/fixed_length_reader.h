// Files of records of one size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/io/file_system.h"
#include "penstock/io/record_reader.h"

namespace penstock::io {

struct FixedLengthFormat {
  size_t record_bytes = 0;  // at least 1
  size_t header_bytes = 0;  // left out at the start of the file
  size_t footer_bytes = 0;  // left out at its end
  // Of n records those from n * piece / pieces on, up to the next piece's
  // first. REQUIRES: more than one piece only of a plain file.
  int64_t pieces = 1;
  int64_t piece = 0;
};

// How many records a plain file of `size` bytes has; InvalidArgument if it is
// no whole number of them.
absl::StatusOr<int64_t> CountFixedLength(const FixedLengthFormat& format,
                                         int64_t size, std::string_view path);

// Opens `path`. What lies between header and footer must be a whole number of
// records: otherwise InvalidArgument with all the sizes, at once for a plain
// file, and after the last whole record for a compressed one, whose size is
// known only then. Next() also returns the stream's own errors (see
// byte_stream.h); each is followed by the end.
absl::StatusOr<std::unique_ptr<RecordReader>> OpenFixedLengthReader(
    FileSystem& files, std::string_view path, const FixedLengthFormat& format,
    const RecordReaderOptions& options);

}  // namespace penstock::io
