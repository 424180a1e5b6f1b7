// TFRecord files.
//
// A record is, with all numbers little-endian:
//
//   u64 length | u32 masked crc32c of it | data | u32 masked crc32c of the data
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/io/file_system.h"
#include "penstock/io/record_reader.h"

namespace penstock::io {

// Opens `path`. Every checksum is verified; a length is believed, and memory
// taken for it, only after its own. Errors from Next():
//
//   wrong data crc    DataLoss; the records after it follow
//   wrong length crc  DataLoss, then the end: what follows cannot be found
//   truncated file    DataLoss, then the end
//   too long          ResourceExhausted, then the end
//   the stream's own  as it says (see byte_stream.h), then the end
absl::StatusOr<std::unique_ptr<RecordReader>> OpenTfRecordReader(
    FileSystem& files, std::string_view path,
    const RecordReaderOptions& options);

}  // namespace penstock::io
