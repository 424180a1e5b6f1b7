// Decoding of gzip and zlib data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "penstock/io/block.h"
#include "penstock/io/byte_stream.h"

namespace penstock::io {

// Decodes what `compressed`, a stream from the start of a file, gives, and
// leaves out its first `skip_bytes` bytes. Checksums and lengths are verified.
// An empty file decodes to nothing. `path` is for messages, which give the
// offset in the compressed file up to which it could be decoded.
//
// REQUIRES: compression is kGzip or kZlib
std::unique_ptr<ByteStream> MakeInflateStream(
    std::unique_ptr<ByteStream> compressed, Compression compression,
    std::string path, int64_t skip_bytes,
    std::shared_ptr<BlockPool> block_pool);

}  // namespace penstock::io
