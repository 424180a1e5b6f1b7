// Making a column row by row, where a row's shape is known only when its turn
// comes: what decoders make.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/data/column.h"
#include "penstock/functions/function.h"

namespace penstock::functions {

// Rows go into slabs, so that memory is taken for rows that exist and not for
// those that a damaged header announces. Rows of one shape become a dense
// column, if they fit one slab.
class RowAppender final {
 public:
  // `context`: of the call whose result this is.
  RowAppender(DType dtype, int rank, int64_t rows, const EvalContext& context);

  // Room for the next row. REQUIRES: a shape within kMaxElementBytes.
  std::byte* Begin(absl::Span<const int64_t> shape);
  // The row that was begun is complete.
  void Commit();
  // The next row, begun or not, is an error.
  void Fail(EvalContext& context, absl::Status status);

  // REQUIRES: every row was committed or has failed.
  Column Finish() &&;

 private:
  int64_t BytesOf(absl::Span<const int64_t> shape) const;

  const DType dtype_;
  const int rank_;
  const int64_t rows_;
  const EvalContext& context_;
  int64_t row_ = 0;
  bool is_uniform_ = true;  // rows so far: one shape, one slab, no gaps
  Shape shape_;             // of the row that was begun
  Shape first_;             // of the first row
  Buffer dims_;
  Buffer pointers_;
  std::vector<Buffer> slabs_;
  int64_t used_ = 0;  // of the last slab
};

}  // namespace penstock::functions
