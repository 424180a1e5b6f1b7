// Rounds of items of like shape, one item for each of several readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/data/chunk.h"

namespace penstock::service {

// Puts items into rounds of `lanes`; the j-th item of a round is lane j's.
//
// Items of one shape make rounds in the order in which they come. Where shapes
// differ, items wait until there are as many of one shape as a round has; those
// make the next one. When 8 rounds of items wait, or 4 of 64 MiB together, the
// next is made of those whose sizes in bytes are closest: the least ratio of
// the largest to the smallest; of several, the one with the oldest item. Within
// a round items are in the order in which they came.
//
// At the end the rest, sorted by size, makes as many rounds as it can, the
// smallest first, so that readers wait the least for the largest of each. Fewer
// than a round are left, the largest if it is all the same: the spares, in the
// order in which they came.
//
// An item that is an error has the shape of the last one that is none. So what
// comes follows from the sequence of items alone, not from how it is cut into
// chunks. Not thread-safe.
class RoundMaker final {
 public:
  using ChunkPtr = std::shared_ptr<const Chunk>;
  struct Row {
    ChunkPtr chunk;
    int64_t row = 0;
  };
  // One round of rows from anywhere, or several of rows that follow each other.
  struct Rounds {
    std::vector<Row> rows;  // of one round, by lane; or empty, and then:
    // Lane j of round r has row `begin + r * lanes + j` of it.
    ChunkPtr chunk;
    int64_t begin = 0;
    int64_t count = 1;
  };
  struct Rest {
    std::vector<Rounds> rounds;
    std::vector<Row> spares;
  };

  // REQUIRES: lanes > 0.
  explicit RoundMaker(int64_t lanes) : lanes_(static_cast<size_t>(lanes)) {}

  // The rounds that can be made now that the chunk's items have come.
  std::vector<Rounds> Add(const Chunk& chunk);
  // There are no more; it is as new.
  Rest Finish();

 private:
  using Shape = std::vector<int64_t>;  // of all columns, each after its rank
  struct Item {
    Row row;
    Shape shape;
    int64_t bytes = 0;
  };

  void AddItem(const ChunkPtr& chunk, int64_t row, std::vector<Rounds>& out);
  // Takes those at `picked`, ascending, from the items that wait.
  Rounds Take(const std::vector<size_t>& picked);
  // Places in `waiting_`, by size.
  std::vector<size_t> BySize() const;
  std::vector<size_t> Closest() const;
  // All rounds that those that wait can make, each ascending.
  std::vector<std::vector<size_t>> LeastWait() const;

  const size_t lanes_;
  std::vector<Item> waiting_;  // in the order in which they came
  int64_t waiting_bytes_ = 0;
  Shape last_shape_;  // of an item that is no error
  int64_t last_bytes_ = 0;
};

}  // namespace penstock::service
