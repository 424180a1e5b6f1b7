// Files whose relative names start from a given directory.
#pragma once

#include <memory>
#include <string>

#include "penstock/io/file_system.h"

namespace penstock::io {

// `files`, with names that do not begin with a '/' taken from `directory`. What
// Glob() gives is as relative as its pattern was. An empty directory changes
// nothing. `files` must outlive it.
std::unique_ptr<FileSystem> MakeRelativeFileSystem(FileSystem& files,
                                                   std::string directory);

}  // namespace penstock::io
