// Rows padded to one shape and made into a batch, and what that costs counted.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/chunk.h"
#include "penstock/data/column.h"
#include "penstock/data/spec.h"
#include "penstock/engine/stats.h"
#include "penstock/plan.pb.h"

namespace penstock::engine {

// How to pad, one of each per component.
struct Padding {
  std::vector<PartialShape> shapes;  // unknown dimensions: the batch's largest
  std::vector<Column> items;
  // Those that may need any: others are not counted.
  std::vector<bool> is_counted;
};

absl::StatusOr<Padding> MakePadding(
    const google::protobuf::RepeatedPtrField<plan::PartialShape>& shapes,
    const google::protobuf::RepeatedPtrField<plan::Tensor>& items,
    absl::Span<const TensorSpec> leaves);

// One batch of all of `rows`. `lengths` are theirs, as the node counts them; if
// there are none, the largest first dimension of a row's counted components.
absl::StatusOr<Chunk> PadRows(const Chunk& rows, const Padding& padding,
                              absl::Span<const int64_t> lengths,
                              NodeStats& stats);

}  // namespace penstock::engine
