// The decoded bytes of one file, from front to back, without ever holding a
// thread that has better things to do than wait for a disk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/io/block.h"
#include "penstock/io/file_system.h"
#include "penstock/io/io_pool.h"
#include "penstock/io/io_stats.h"

namespace penstock::io {

enum class Compression {
  kNone,
  kGzip,  // RFC 1952; members that follow each other decode as one
  kZlib,  // RFC 1950; likewise
  kZstd,  // RFC 8878; likewise. Read only
};

inline constexpr int64_t kMaxReadBytes = int64_t{16} << 20;

// Reads that are larger than a block: they are for disks that seek.
// They are done one at a time, as they came: several at once would make it
// seek, and who waits longest is needed first.
struct LargeReads {
  Mutex mutex;
  CondVar changed;
  uint64_t begun ABSL_GUARDED_BY(mutex) = 0;
  uint64_t done ABSL_GUARDED_BY(mutex) = 0;
  // Streams so far. Their first reads differ in size, so that not all of them
  // wait for their next one at the same time.
  std::atomic<uint32_t> streams{0};
};

struct ByteStreamOptions {
  // Does the reads that have to wait. Required; outlives the stream.
  IoPool* io_pool = nullptr;
  // Memory shared with other streams; unset means a small pool of its own.
  // Blocks are of the pool's size.
  std::shared_ptr<BlockPool> block_pool = nullptr;
  // Bytes per block if `block_pool` is unset; at least 1.
  size_t block_bytes = size_t{256} << 10;
  // Blocks being read or read and not yet taken, when storage has to be waited
  // for; at least 1. Bytes in the page cache are read when they are asked for.
  size_t read_ahead = 4;
  // The same, where it is over 0: may change while the stream is read.
  std::shared_ptr<const std::atomic<int64_t>> read_ahead_now = nullptr;
  // Bytes of a read that goes to storage, where that is more than a block's; at
  // most kMaxReadBytes. May change likewise.
  std::shared_ptr<const std::atomic<int64_t>> read_bytes_now = nullptr;
  // Shared by the streams whose files are read in turn, where it is set.
  std::shared_ptr<LargeReads> large_reads = nullptr;
  // Whether reads begin when the file is opened, and not when its first bytes
  // are asked for.
  bool reads_when_opened = false;
  // Where to count; unset: nowhere.
  std::shared_ptr<IoStats> stats = nullptr;
};

// One caller at a time.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Returns the next run of decoded bytes, at most one block of them; an empty
  // block at the end of the file; or nullopt if the bytes are not here yet.
  //
  // After nullopt, and only then, `wake` is called once, from an I/O thread,
  // when it is worth asking again; asking earlier replaces it. It must not call
  // back into the stream. Dropping the stream drops a wake not yet begun; one
  // that has begun may end after the stream is gone.
  //
  // Decoding is done here, in the caller's thread, in memory bounded by one
  // block whatever the file claims. An error is returned after all bytes before
  // it, and again by each later call. DataLoss means bytes that cannot be
  // decoded, or a file that became shorter; the message says where.
  virtual absl::StatusOr<std::optional<Block>> Next(
      std::function<void()> wake) = 0;

  // Decoded bytes from the start of the file (not of the stream) to its end,
  // if known before decoding them.
  virtual std::optional<int64_t> decoded_size() const = 0;
};

// Opens `path` for reading from `start_offset`, counted in decoded bytes: plain
// files seek there, compressed ones decode and discard. OutOfRange, at once or
// from Next(), if the file ends before it.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenByteStream(
    FileSystem& files, std::string_view path, Compression compression,
    int64_t start_offset, const ByteStreamOptions& options);

}  // namespace penstock::io
