// The bytes of a file as they are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "penstock/io/block.h"
#include "penstock/io/byte_stream.h"
#include "penstock/io/file_system.h"

namespace penstock::io {

// Reads `file` from `start_offset`, which is not past its end, to the length it
// had when it was opened; `path` is for messages.
//
// Bytes in the page cache are copied in the caller's thread, with no hand-off.
// At the first byte that is not there, up to `options.read_ahead` blocks go to
// the I/O pool at once, and more as they are taken, until the page cache is
// ahead of the reader again.
std::unique_ptr<ByteStream> MakePlainStream(
    std::unique_ptr<File> file, std::string path, int64_t start_offset,
    std::shared_ptr<BlockPool> block_pool, const ByteStreamOptions& options);

}  // namespace penstock::io
