// Ragged and sparse values (spec.h) put together into larger ones, and taken
// apart: several columns that are one value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/data/chunk.h"
#include "penstock/data/spec.h"

namespace penstock {

// A component of an element: a tensor (or dataset), or the columns of a value
// that is ragged or sparse. Of a ragged one: the values, then the row splits
// from the innermost to the outermost.
struct Part {
  // kRaggedRow: a tensor that is a row of a ragged value; batches of it are.
  enum class Kind : uint8_t { kTensor, kRagged, kSparse, kRaggedRow };

  Kind kind = Kind::kTensor;
  int first = 0;  // column
  int columns = 1;
  DType splits = DType::kInt64;  // kRaggedRow
};

std::vector<Part> PartsOf(const ElementSpec& spec);
// The parts of the rows that a batch of `spec` comes apart into.
std::vector<Part> RowPartsOf(const ElementSpec& spec);
bool HasComposite(const ElementSpec& spec);

// The specs of such values.
ElementSpec RaggedOf(ElementSpec values, DType splits,
                     std::optional<int64_t> num_splits);
ElementSpec SparseOf(DType values, std::optional<int64_t> rank);
// How many levels a tensor of `shape` gets in a ragged batch: up to its last
// unknown dimension. REQUIRES: shape.has_rank().
int RaggedLevels(const PartialShape& shape);

// The spec of batches of `dimension` elements of `spec`, where that is known.
ElementSpec Batched(const ElementSpec& spec, std::optional<int64_t> dimension);
// The spec of what a batch is made of. A tensor that has no first dimension is
// an error.
absl::StatusOr<ElementSpec> Unbatched(const ElementSpec& spec);

// The spec of batches of `dimension` rows, each a row of a batch of `spec`.
absl::StatusOr<ElementSpec> Rebatched(const ElementSpec& spec,
                                      std::optional<int64_t> dimension);

// All rows of `rows`, at least one, as one: tensors stacked, ragged values one
// after another with one level more, sparse ones with one dimension more.
// InvalidArgument if shapes do not go together or splits do not add up.
absl::StatusOr<Chunk> StackRows(absl::Span<const Part> parts,
                                const Chunk& rows);

// How many rows row `row` is a batch of. InvalidArgument if its parts disagree.
absl::StatusOr<int64_t> BatchSizeOf(absl::Span<const Part> parts,
                                    const Chunk& chunk, int64_t row);
// Those rows. REQUIRES: `size` is what BatchSizeOf() said.
absl::StatusOr<Chunk> SplitRow(absl::Span<const Part> parts, const Chunk& chunk,
                               int64_t row, int64_t size);

// The rows of a column of tensors as one ragged value with `levels` >= 1 row
// splits of dtype int32 or int64: the columns of a Part, one row each.
absl::StatusOr<std::vector<Column>> StackRagged(const Column& rows, int levels,
                                                DType splits);
// The same as one sparse value of `shape`, whose unknown dimensions become the
// largest. DataLoss if a row is larger, InvalidArgument if it has another rank.
absl::StatusOr<std::vector<Column>> StackSparse(const Column& rows,
                                                const PartialShape& shape);

}  // namespace penstock
