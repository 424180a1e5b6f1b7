// Files that are one record each.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/io/file_system.h"
#include "penstock/io/record_reader.h"

namespace penstock::io {

// Opens `path`. All its bytes are one record, an empty file's too.
//
// Errors from Next(), each followed by the end: ResourceExhausted for a file
// that is too long; the stream's own (see byte_stream.h).
absl::StatusOr<std::unique_ptr<RecordReader>> OpenWholeFileReader(
    FileSystem& files, std::string_view path,
    const RecordReaderOptions& options);

}  // namespace penstock::io
