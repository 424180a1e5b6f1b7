// Where frames are made: rows are copied there or, better, computed there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/base/mutex.h"
#include "penstock/data/arena.h"
#include "penstock/data/buffer.h"
#include "penstock/data/chunk.h"

namespace penstock {

// An encoded chunk in shared memory, with some bytes after it. The memory is
// free again when `memory` and all columns over it have gone.
struct Frame {
  Owner memory;
  uint32_t segment = 0;
  uint64_t offset = 0;
  size_t chunk_bytes = 0;
  uint32_t trailer_segment = 0;
  uint64_t trailer_offset = 0;
};

// Another process, in whose memory encoded chunks lie. A buffer over one has an
// owner that points to its first byte.
class Lender {
 public:
  virtual ~Lender() = default;
  // The connection that keeps what was lent: it is as it was while anybody has
  // the descriptor open.
  virtual int connection() const = 0;
  // The chunk that begins at `data` is not given back, ever.
  virtual void Keep(const std::byte* data) = 0;
};

// Less than this is not worth its own frame.
inline constexpr size_t kMinReservedBytes = size_t{256} << 10;

// Segments from here on are lenders'.
inline constexpr uint32_t kFirstLentSegment = uint32_t{1} << 31;

// The shared memory of one iterator. Thread-safe.
class FrameMemory final : public std::enable_shared_from_this<FrameMemory> {
 public:
  static std::shared_ptr<FrameMemory> Make(size_t limit_bytes);

  // Writable room for columns of these sizes, to be filled with rows that may
  // become a frame: Make() then writes what else a frame has around them.
  // Empty if there is no room.
  std::vector<Buffer> Reserve(absl::Span<const size_t> column_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A frame of `chunk` and then `trailer`. Columns that lie in reserved memory
  // are not copied. ResourceExhausted past the limit (`may_exceed`: Arena).
  absl::StatusOr<Frame> Make(const Chunk& chunk, std::string_view trailer,
                             bool may_exceed) ABSL_LOCKS_EXCLUDED(mutex_);

  // The trainer may hold on to frames that are given up here: what is free from
  // now on is not given out any more.
  void Retire() ABSL_LOCKS_EXCLUDED(mutex_);

  const Arena& arena() const { return arena_; }

  // Segments of a lender, which has mapped `fd` at `data`: a chunk that lies
  // there as a whole is not copied. Gives the number of the segment here.
  uint32_t Adopt(const std::byte* data, size_t size, int fd,
                 std::weak_ptr<Lender> lender) ABSL_LOCKS_EXCLUDED(mutex_);
  void Disown(uint32_t segment) ABSL_LOCKS_EXCLUDED(mutex_);

  // What the trainer needs to map a segment: its descriptor and, of one that is
  // a lender's, the connection's, to be kept open as long as anybody looks.
  // They stay open as long as `keeper` lives.
  struct Segment {
    size_t size = 0;
    std::vector<int> fds;
    Owner keeper;
  };
  absl::StatusOr<Segment> Find(uint32_t segment) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Reserved memory. A frame may be made in it once.
  struct Slab {
    Arena::Region region;
    size_t values_end;
    bool is_used = false;
  };

  struct Lent {
    const std::byte* data;
    size_t size;
    int fd;
    std::weak_ptr<Lender> lender;
  };

  explicit FrameMemory(size_t limit_bytes) : arena_(limit_bytes) {}
  // Frees `region` when the last holder has gone.
  Owner Own(const Arena::Region& region);
  // The slab that most of `chunk` lies in, marked as used; its memory's owner.
  bool Claim(const Chunk& chunk, Slab& slab, Owner& owner)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A frame of a chunk that lies in a lender's memory, if it does.
  std::optional<Frame> MakeOfLent(const Chunk& chunk)
      ABSL_LOCKS_EXCLUDED(mutex_);

  Arena arena_;
  mutable Mutex mutex_;
  std::map<const std::byte*, Slab> slabs_ ABSL_GUARDED_BY(mutex_);
  std::map<uint32_t, Lent> lent_ ABSL_GUARDED_BY(mutex_);
  uint32_t next_lent_ ABSL_GUARDED_BY(mutex_) = kFirstLentSegment;
  bool is_retired_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock
