#include "penstock/io/byte_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/cpu_clock.h"
#include "penstock/base/status.h"
#include "penstock/io/inflate_stream.h"
#include "penstock/io/plain_stream.h"
#include "penstock/io/zstd_stream.h"

namespace penstock::io {

absl::StatusOr<std::unique_ptr<ByteStream>> OpenByteStream(
    FileSystem& files, std::string_view path_view, Compression compression,
    int64_t start_offset, const ByteStreamOptions& options) {
  std::string path(path_view);
  if (options.io_pool == nullptr) {
    return absl::InvalidArgumentError("io_pool must be set; got none");
  }
  std::shared_ptr<BlockPool> pool = options.block_pool;
  if (pool == nullptr) {
    pool = std::make_shared<BlockPool>(std::max<size_t>(1, options.block_bytes),
                                       options.read_ahead + 2);
  }
  const int64_t start_ns = SteadyClock().NowNanos();
  const int64_t start_cpu_ns = ThreadCpuNanos();
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files.Open(path));
  if (options.stats != nullptr) {
    options.stats->nanos += SteadyClock().NowNanos() - start_ns;
    options.stats->cpu_nanos += ThreadCpuNanos() - start_cpu_ns;
  }
  if (compression != Compression::kNone) {
    std::unique_ptr<ByteStream> plain =
        MakePlainStream(std::move(file), path, 0, pool, options);
    if (compression == Compression::kZstd) {
      return MakeZstdStream(std::move(plain), std::move(path), start_offset,
                            std::move(pool));
    }
    return MakeInflateStream(std::move(plain), compression, std::move(path),
                             start_offset, std::move(pool));
  }
  if (start_offset < 0 || start_offset > file->size()) {
    return absl::OutOfRangeError(absl::StrCat("expected at least ",
                                              start_offset, " bytes; found ",
                                              file->size(), ": ", path));
  }
  return MakePlainStream(std::move(file), std::move(path), start_offset,
                         std::move(pool), options);
}

}  // namespace penstock::io
