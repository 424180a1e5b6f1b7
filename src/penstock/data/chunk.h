// A chunk: a run of elements as columns. What flows between operators.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/data/column.h"

namespace penstock {

// An element that is an error. It takes a position like any other element: it
// is raised there, and reading goes on after it.
struct RowError {
  int64_t row = 0;
  absl::Status status;
};

// `rows` consecutive elements. Component c of element i is row i of column c.
// Cheap to copy. The columns of an error row hold some valid value that means
// nothing.
struct Chunk {
  int64_t rows = 0;
  std::vector<Column> columns;
  // One word per row that names where the row came from (source ordinal, repeat
  // index, parent and child ordinals, hashed); random functions are keyed by
  // it. Empty unless the plan has such functions.
  Buffer lineage;
  std::vector<RowError> errors;  // by ascending row

  bool has_lineage() const { return lineage.size() > 0; }
  int64_t NumBytes() const;
};

// Rows [begin, begin + count); no copy.
Chunk Slice(const Chunk& chunk, int64_t begin, int64_t count);

// The rows named by `rows`, in that order. Small rows are copied; large rows
// become pointers to where they are.
Chunk Gather(const Chunk& chunk, absl::Span<const int32_t> rows);

// The error of row `row`, or null.
const absl::Status* ErrorAt(const Chunk& chunk, int64_t row);

// One error element with meaningless values in `columns`' place.
Chunk ErrorChunk(absl::Status status, std::vector<Column> columns);

}  // namespace penstock
