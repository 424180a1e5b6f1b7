// Files of lines.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/io/file_system.h"
#include "penstock/io/record_reader.h"

namespace penstock::io {

struct TextLineFormat {
  // Set: lines are records of comma-separated values with this character
  // between fields, and a field that begins with a double quote goes on, over
  // ends of lines, to the quote that ends it (RFC 4180).
  std::optional<char> field_delim;
};

// Opens `path`. A line ends at "\n" or at the end of the file, and is returned
// without the "\n" and without one "\r" before it. Empty lines are records; the
// nothing after a last "\n" is not. Bytes are not looked at otherwise: any
// encoding, NUL included, passes through.
//
// Errors from Next(), each followed by the end: ResourceExhausted for a line
// that is too long; the stream's own (see byte_stream.h).
absl::StatusOr<std::unique_ptr<RecordReader>> OpenTextLineReader(
    FileSystem& files, std::string_view path,
    const RecordReaderOptions& options, const TextLineFormat& format = {});

}  // namespace penstock::io
