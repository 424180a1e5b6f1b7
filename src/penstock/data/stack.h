// Rows put together into larger rows, and taken apart again.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/column.h"
#include "penstock/data/spec.h"

namespace penstock {

// Groups of `size` consecutive rows, each a row with a leading dimension of
// `size`. Dense columns are only relabelled; others are copied once.
// InvalidArgument if the rows of the column are not all of one shape.
// REQUIRES: column.rows() is a multiple of size (0 rows of size 0 make none).
absl::StatusOr<Column> Stack(const Column& column, int64_t size);

// The same with rows of different sizes: each is padded at its ends with
// `padding` (one item of the column's dtype) to `shape`; where that has an
// unknown dimension, to the largest in the group. `rows` = all of one group.
// InvalidArgument if a row is larger than `shape` or has another rank.
absl::StatusOr<Column> PadAndStack(const Column& column,
                                   const PartialShape& shape,
                                   const Column& padding);

}  // namespace penstock
