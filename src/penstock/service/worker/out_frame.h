// What a reading sends, and where it gets it from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/data/buffer.h"
#include "penstock/engine/executor.h"
#include "penstock/service/worker/frame_parts.h"
#include "penstock/service/worker/spill_file.h"

namespace penstock::service {

// The segment of a frame that lies in none: it cannot be lent.
inline constexpr uint32_t kNoSegment = ~uint32_t{0};

// Some items of a bundle: an encoded chunk, and after it the items' lineages,
// if the division needs them; in shared memory or, for a reader that takes
// them, in several places. The frame that ends a bundle may have no items and
// no bytes.
struct OutFrame {
  uint64_t position = 0;
  uint64_t items = 0;
  bool is_loose = false;
  bool is_spare = false;  // of no round (Sharing.lanes)
  bool is_end = false;
  bool is_gone = false;  // is_end: nothing of the bundle is here (Sharing.SKIP)
  uint64_t digest = 0;   // is_end: ItemDigest::Get()
  Owner memory;          // keeps `data`, and is counted for `parts`
  const std::byte* data = nullptr;
  size_t bytes = 0;
  size_t chunk_bytes = 0;  // of them
  uint32_t segment = 0;
  uint64_t offset = 0;                      // in the segment
  std::shared_ptr<const FrameParts> parts;  // set: instead of `data`
  // Within productions: its bytes are on disk instead.
  std::shared_ptr<const SpillFile::Piece> spilled;

  uint64_t end() const { return position + items; }
};

// The frames of a bundle for whom it was leased to. It has one reader at a
// time; a new one takes the place of the one before, which is told so.
// Thread-safe.
class FrameSource {
 public:
  virtual ~FrameSource() = default;

  // `reader` is woken whenever Take() may have more to say. Frames come from
  // the one on that has the item at `from`. `takes_parts`: they may lie in
  // several places.
  virtual void Attach(const engine::Waker& reader, uint64_t from,
                      bool takes_parts) = 0;
  // The next frame; nullopt: not yet. After a frame with is_end there is none.
  // Aborted for a reader that was replaced.
  virtual absl::StatusOr<std::optional<OutFrame>> Take(
      const engine::Waker& reader) = 0;
  // What Take() would say of a reader that gets no more frames; else OK.
  virtual absl::Status Check(const engine::Waker& reader) const = 0;
  virtual void Detach(const engine::Waker& reader) = 0;
  // Ends it: readers hear `why`.
  virtual void Close(const absl::Status& why) = 0;

  virtual bool is_read() const = 0;
  // A reader has had all of it.
  virtual bool is_taken() const = 0;
  virtual bool is_closed() const = 0;
};

}  // namespace penstock::service
