// Decoding of zstd data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "penstock/io/block.h"
#include "penstock/io/byte_stream.h"

namespace penstock::io {

// As MakeInflateStream(), for zstd frames (RFC 8878) that follow each other.
// A frame may need up to 128 MiB to be decoded; one that needs more is an
// error.
std::unique_ptr<ByteStream> MakeZstdStream(
    std::unique_ptr<ByteStream> compressed, std::string path,
    int64_t skip_bytes, std::shared_ptr<BlockPool> block_pool);

}  // namespace penstock::io
