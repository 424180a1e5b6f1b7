// A file of a descriptor.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/base/socket.h"
#include "penstock/io/file_system.h"

namespace penstock::io {

// A file that was opened for reading, known as `path`. An error if it is none
// that can be read at any offset.
absl::StatusOr<std::unique_ptr<File>> FileOf(Descriptor fd, std::string path);

}  // namespace penstock::io
