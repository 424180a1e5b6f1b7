// Frames on disk, for readers that are far behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/base/socket.h"
#include "penstock/data/buffer.h"

namespace penstock::service {

// A file without a name, where temporary files are: it goes with the process,
// however that ends. Thread-safe.
class SpillFile final : public std::enable_shared_from_this<SpillFile> {
 public:
  // Some bytes in the file. Their room is free when this has gone.
  class Piece final {
   public:
    Piece(std::shared_ptr<SpillFile> file, int64_t offset, size_t size,
          uint32_t crc)
        : file_(std::move(file)), offset_(offset), size_(size), crc_(crc) {}
    ~Piece();
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;

    // A copy. DataLoss if it is not what was written.
    absl::StatusOr<Buffer> Read() const;

   private:
    const std::shared_ptr<SpillFile> file_;
    const int64_t offset_;
    const size_t size_;
    const uint32_t crc_;
  };

  static absl::StatusOr<std::shared_ptr<SpillFile>> Make(int64_t limit_bytes);

  // ResourceExhausted past the limit, or if the disk is full.
  absl::StatusOr<std::shared_ptr<const Piece>> Write(const std::byte* data,
                                                     size_t size)
      ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t used_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t limit_bytes() const { return limit_bytes_; }

 private:
  SpillFile(Descriptor file, int64_t limit_bytes)
      : file_(std::move(file)), limit_bytes_(limit_bytes) {
    free_[0] = limit_bytes;
  }
  // Where there is room; -1: nowhere.
  int64_t Allocate(int64_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  void Free(int64_t offset, int64_t size) ABSL_LOCKS_EXCLUDED(mutex_);

  const Descriptor file_;
  const int64_t limit_bytes_;
  mutable Mutex mutex_;
  std::map<int64_t, int64_t> free_ ABSL_GUARDED_BY(mutex_);  // joined
  int64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace penstock::service
