// Files of some folders alone, for those who run what others have written.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/io/file_system.h"

namespace penstock::io {

// The files of this machine that lie in one of `folders`, or below, wherever
// their names lead through `..` and symbolic links; and nothing is written but
// in `written`, which must be some of them, or below.
// What lies elsewhere is PermissionDenied, whether it is there or not, and the
// error names `flag`, which the folders were given by. A link that is changed
// between looking and opening opens nothing.
//
// A pattern must begin in one of the folders, and is refused if some of what it
// matches leads out of them.
//
// InvalidArgument if one of `folders` is no folder.
absl::StatusOr<std::unique_ptr<FileSystem>> MakeAllowedFileSystem(
    const std::vector<std::string>& folders, const std::string& flag,
    const std::vector<std::string>& written = {});

}  // namespace penstock::io
