// Gathers rows of several chunks into one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "penstock/data/chunk.h"
#include "penstock/data/frame_memory.h"

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

  // What was added, in order; the builder is empty again. Rows that are copied
  // go where a frame can be made of them without another copy, if `frames` is
  // there and has room.
  Chunk Build(FrameMemory* frames = nullptr);

 private:
  struct Run {
    int source;
    int64_t begin;
    int64_t count;
  };
  // `room`: where its rows are to lie, or empty.
  Column BuildColumn(size_t index, Buffer room) const;
  // Whether its rows have one shape.
  bool IsDense(size_t index) const;
  // By column: memory for the rows that will be copied. Or nothing.
  std::vector<Buffer> Reserve(FrameMemory& frames) const;
  // The rows' memory, if they lie in it one after another. REQUIRES: dense.
  std::optional<Buffer> Joined(size_t index) const;

  int64_t rows_ = 0;
  std::vector<Chunk> sources_;
  std::vector<Run> runs_;
};

}  // namespace penstock
