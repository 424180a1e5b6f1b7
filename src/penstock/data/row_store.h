// Rows kept in numbered places, each replaced on its own: a shuffle's window.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/data/chunk.h"
#include "penstock/data/spec.h"

namespace penstock {

// Holds copies, so that a row never keeps the block alive that it came from.
// Not thread-safe.
class RowStore final {
 public:
  explicit RowStore(std::vector<TensorSpec> leaves, bool has_lineage);
  ~RowStore();

  int64_t size() const { return size_; }
  // Bytes held, roughly.
  int64_t num_bytes() const;

  // Adds rows [begin, begin + count) of `chunk` at new places at the end.
  void Append(const Chunk& chunk, int64_t begin, int64_t count);

  // For i in order: gives the row at places[i], then puts row begin + i of
  // `chunk` in its place. The rows given, in order, as one chunk.
  // REQUIRES, as of Remove(): the rows given have the same ranks.
  Chunk Swap(absl::Span<const int64_t> places, const Chunk& chunk,
             int64_t begin);

  // For i in order: gives the row at places[i], moves the last row into its
  // place and makes the store one smaller.
  Chunk Remove(absl::Span<const int64_t> places);

  // Puts row `row` of `chunk` at `place`, which exists.
  void Put(int64_t place, const Chunk& chunk, int64_t row);
  // Says how many rows there will be: they then take no more memory than they
  // need. That is not used before they come.
  void Reserve(int64_t size);
  // Makes room for `size` rows with no meaning yet, to be Put().
  void Resize(int64_t size);

 private:
  class Cells;
  class FixedCells;
  class LooseCells;

  std::vector<TensorSpec> leaves_;
  std::vector<std::unique_ptr<Cells>> columns_;
  std::vector<uint64_t> lineage_;
  bool has_lineage_;
  std::map<int64_t, absl::Status> errors_;  // by place
  int64_t size_ = 0;
};

}  // namespace penstock
