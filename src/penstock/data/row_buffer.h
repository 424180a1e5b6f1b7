// Rows copied together as they come, then taken all at once: a group that
// fills.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "penstock/data/chunk.h"

namespace penstock {

// Holds copies, one behind another, so that a row never keeps the block alive
// that it came from. Not thread-safe.
class RowBuffer final {
 public:
  int64_t rows() const { return rows_; }
  // Bytes held, roughly.
  int64_t num_bytes() const { return bytes_; }
  // Whether all rows so far have the same ranks; those that differ are counted
  // and not kept.
  bool is_uniform() const { return is_uniform_; }

  // Adds the rows of `chunk` that `rows` names. REQUIRES: none is an error, and
  // the dtypes are those of the rows before.
  void Append(const Chunk& chunk, absl::Span<const int32_t> rows);

  // All rows, in order; the buffer is empty again.
  Chunk Take();

 private:
  struct Cells {
    DType dtype = DType::kInt64;
    int rank = 0;
    bool is_dense = true;  // so far, all rows have the shape of the first
    std::vector<int64_t> dims;
    // Items; of strings, their bytes, and the sizes apart.
    std::string values;
    std::vector<uint64_t> sizes;
  };
  void AppendTo(Cells& cells, const Column& column,
                absl::Span<const int32_t> rows);
  Column TakeFrom(Cells& cells) const;

  int64_t rows_ = 0;
  int64_t bytes_ = 0;
  bool is_uniform_ = true;
  std::vector<Cells> columns_;
  std::vector<uint64_t> lineage_;
};

}  // namespace penstock
