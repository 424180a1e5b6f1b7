// Rows put together into larger rows, and taken apart again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/chunk.h"
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

// `status` of one of several components: says which, from 0.
absl::Status OfComponent(size_t component, size_t components,
                         const absl::Status& status);

// Why the first rows of both cannot be in one `whole` ("batch").
// REQUIRES: of some component, the ranks differ.
absl::Status UnequalRanks(std::string_view whole, const Chunk& first,
                          const Chunk& other);

}  // namespace penstock
