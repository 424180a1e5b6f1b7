// Where a map puts its rows so that the batch after it need not copy them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "penstock/data/chunk.h"
#include "penstock/data/frame_memory.h"
#include "penstock/data/spec.h"
#include "penstock/engine/stream.h"

namespace penstock::engine {

// Memory for the columns of some rows, in order; one without bytes where a
// column has no fixed size. None at all: anywhere.
struct Places : std::vector<Buffer> {
  bool may_stay = false;  // Group
};

// Hands out the memory of whole groups (Request::group), row by row. Rows that
// come at another place of their group than expected, after an error say, get
// none until the next group begins. Not thread-safe.
class BatchPlaces final {
 public:
  // `memory` may be null: then there is never a place. `leaves`: what is known
  // of rows before there are any.
  BatchPlaces(std::shared_ptr<FrameMemory> memory,
              absl::Span<const TensorSpec> leaves);

  // Rows look like those of `chunk`.
  void Learn(const Chunk& chunk);

  // How many of `rows` rows to compute at once, if `pending` rows are under
  // way: those of one group, if that has a place.
  int64_t Limit(const Group& group, int64_t pending, int64_t rows) const;
  // For the next `rows` rows, all of one group.
  Places Take(const Group& group, int64_t pending, int64_t rows);

 private:
  bool HasPlace(const Group& group) const;

  std::shared_ptr<FrameMemory> memory_;
  std::vector<size_t> row_bytes_;  // by column; 0 where that is not fixed
  size_t total_bytes_ = 0;         // of a row
  std::vector<Buffer> group_;      // of all rows of the group
  int64_t next_ = 0;               // row of it
};

// `chunk` with those columns moved into their places that fit and are not
// there, unless they may stay where they are.
void MoveTo(const Places& places, Chunk& chunk);

}  // namespace penstock::engine
