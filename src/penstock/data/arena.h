// Shared memory that frames are cut from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"

namespace penstock {

// A few memfds, each mapped once here and once by the reader, and an allocator
// over them. Thread-safe.
//
// Segments are sealed against shrinking, so that a reader's mapping can never
// fault. Space is handed out lowest address first: pages that were touched once
// are used again before new ones are.
class Arena final {
 public:
  struct Region {
    uint32_t segment = 0;
    uint64_t offset = 0;
    size_t size = 0;
    std::byte* data = nullptr;
  };

  // No more than `limit_bytes` are mapped, but for regions that may exceed.
  explicit Arena(size_t limit_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // 64-byte aligned. ResourceExhausted past the limit; `may_exceed`: only if
  // it would be past the limit alone.
  absl::StatusOr<Region> Allocate(size_t size, bool may_exceed = false)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // REQUIRES: `region` came from Allocate() and was not freed.
  void Free(const Region& region) ABSL_LOCKS_EXCLUDED(mutex_);

  // What a reader needs to map a segment. The descriptor stays the arena's.
  struct SegmentInfo {
    int fd;
    size_t size;
  };
  absl::StatusOr<SegmentInfo> Segment(uint32_t segment) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  size_t limit_bytes() const { return limit_bytes_; }
  size_t used_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Mapping {
    int fd;
    std::byte* data;
    size_t size;
    std::map<uint64_t, uint64_t> free;  // offset -> bytes, coalesced
  };
  absl::Status AddSegment(size_t size, bool may_exceed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t limit_bytes_;
  mutable Mutex mutex_;
  std::vector<Mapping> segments_ ABSL_GUARDED_BY(mutex_);
  size_t mapped_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace penstock
