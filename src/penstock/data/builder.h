// Gathers rows of several chunks into one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "penstock/data/chunk.h"

namespace penstock {

// Collects rows, then makes a chunk of them. Rows of one shape become a dense
// column (one copy, or none if they lie one after another already); rows of
// different sizes a ragged one (pointers, no copy). Not thread-safe.
class ChunkBuilder final {
 public:
  int64_t rows() const { return rows_; }

  // Whether `chunk`'s rows can join those already here: the same number of
  // columns, dtypes and ranks. An empty builder takes anything.
  bool Fits(const Chunk& chunk) const;

  // Makes `chunk` known as a source of rows until the next Build(); returns
  // its number for Append(). REQUIRES: Fits(chunk).
  int AddSource(const Chunk& chunk);

  // Adds rows [begin, begin + count) of a source.
  void Append(int source, int64_t begin, int64_t count);
  void Append(const Chunk& chunk, int64_t begin, int64_t count) {
    if (count > 0) Append(AddSource(chunk), begin, count);
  }

  // What was added, in order; the builder is empty again.
  Chunk Build();

 private:
  struct Run {
    int source;
    int64_t begin;
    int64_t count;
  };
  Column BuildColumn(size_t index) const;
  // The rows' memory, if they lie in it one after another. REQUIRES: dense.
  std::optional<Buffer> Joined(size_t index) const;

  int64_t rows_ = 0;
  std::vector<Chunk> sources_;
  std::vector<Run> runs_;
};

}  // namespace penstock
