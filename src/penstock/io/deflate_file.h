// Files compressed while they are written.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "penstock/io/byte_stream.h"
#include "penstock/io/file_system.h"

namespace penstock::io {

// A file whose bytes go to `file` compressed, as one member. kNone returns
// `file` itself.
absl::StatusOr<std::unique_ptr<WritableFile>> MakeDeflateFile(
    std::unique_ptr<WritableFile> file, Compression compression);

}  // namespace penstock::io
