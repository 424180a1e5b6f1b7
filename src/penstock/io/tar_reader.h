// Tar archives in WebDataset's form.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/io/file_system.h"
#include "penstock/io/record_reader.h"

namespace penstock::io {

// Opens `path`. A record is a sample: the members that follow each other with
// one key (see base/tar.h), as the archive has them, headers included. An
// archive may end without the blocks of zeros that should end it.
//
// Errors from Next(), each followed by the end: DataLoss for damaged headers
// and an archive that ends inside a member, InvalidArgument for a name that
// leads out of the archive, ResourceExhausted for a sample that is too long;
// the stream's own (see byte_stream.h).
absl::StatusOr<std::unique_ptr<RecordReader>> OpenTarReader(
    FileSystem& files, std::string_view path,
    const RecordReaderOptions& options);

}  // namespace penstock::io
