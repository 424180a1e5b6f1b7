// Files of records of one size.
#pragma once

#include <cstddef>
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
};

// Opens `path`. What lies between header and footer must be a whole number of
// records: otherwise InvalidArgument with all the sizes, at once for a plain
// file, and after the last whole record for a compressed one, whose size is
// known only then. Next() also returns the stream's own errors (see
// byte_stream.h); each is followed by the end.
absl::StatusOr<std::unique_ptr<RecordReader>> OpenFixedLengthReader(
    FileSystem& files, std::string_view path, const FixedLengthFormat& format,
    const RecordReaderOptions& options);

}  // namespace penstock::io
