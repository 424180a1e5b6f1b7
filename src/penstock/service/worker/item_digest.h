// A number for all items of a bundle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "penstock/data/chunk.h"

namespace penstock::service {

// CRC32C of blocks of memory, by where they begin.
struct BlockSum {
  size_t bytes;
  uint32_t crc32c;
};
using BlockSums = std::unordered_map<const std::byte*, BlockSum>;

// Rows of numbers that are larger are looked at in blocks of this size.
inline constexpr size_t kSumBlockBytes = size_t{512} << 10;

// The sum over items of a hash of (position, values). It covers the bytes of
// every column of a row, its shapes where they differ, and of a row that is an
// error its code; not lineages, nor whether rows are loose, which follow from
// the same plan. So it does not depend on how frames are cut, who computed
// which of them, and in which order they are added.
class ItemDigest final {
 public:
  // The chunk's first item is at `position`. Of what was added before, nothing
  // is added again: a run that begins again somewhere gives the same items.
  // With `sums`, those of the blocks of large rows are added there.
  void Add(const Chunk& chunk, uint64_t position, BlockSums* sums = nullptr);

  // The digest of items [0, items()), never 0; 0 if the first ones are missing,
  // as in a run that began in the middle.
  uint64_t Get() const;
  uint64_t items() const { return end_; }
  // Items from here on are the first that will be added.
  void BeginAt(uint64_t position);

 private:
  uint64_t sum_ = 0;
  uint64_t end_ = 0;  // items before it were added
  bool is_whole_ = true;
};

}  // namespace penstock::service
