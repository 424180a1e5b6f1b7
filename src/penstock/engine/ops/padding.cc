#include "penstock/engine/ops/padding.h"

#include <algorithm>
#include <utility>

#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/data/stack.h"
#include "penstock/plan/convert.h"

namespace penstock::engine {
namespace {

bool MayPad(const PartialShape& from, const PartialShape& to) {
  if (!from.is_fully_known() || !to.has_rank()) return true;
  for (int d = 0; d < from.rank(); ++d) {
    if (to.dims()[d].has_value() && to.dims()[d] != from.dims()[d]) return true;
  }
  return false;
}

uint64_t ItemsOf(const Column& column) {
  uint64_t items = 0;
  for (int64_t row = 0; row < column.rows(); ++row) {
    items += static_cast<uint64_t>(column.RowItems(row));
  }
  return items;
}

void Count(const Chunk& rows, const Chunk& batch, const Padding& padding,
           absl::Span<const int64_t> lengths, PaddingStats& stats) {
  uint64_t items = 0;
  uint64_t padded = 0;
  uint64_t shape = static_cast<uint64_t>(rows.rows);
  std::vector<int64_t> longest;
  if (lengths.empty()) longest.resize(rows.rows, 0);
  for (size_t c = 0; c < rows.columns.size(); ++c) {
    for (int64_t dim : batch.columns[c].RowShape(0)) {
      shape = Combine(shape, static_cast<uint64_t>(dim));
    }
    if (!padding.is_counted[c]) continue;
    const Column& column = rows.columns[c];
    items += ItemsOf(column);
    padded += static_cast<uint64_t>(batch.columns[c].RowItems(0));
    if (column.rank() == 0) continue;
    for (size_t row = 0; row < longest.size(); ++row) {
      longest[row] =
          std::max(longest[row], column.RowShape(static_cast<int64_t>(row))[0]);
    }
  }
  stats.Add(items, padded, shape, lengths.empty() ? longest : lengths);
}

}  // namespace

absl::StatusOr<Padding> MakePadding(
    const google::protobuf::RepeatedPtrField<plan::PartialShape>& shapes,
    const google::protobuf::RepeatedPtrField<plan::Tensor>& items,
    absl::Span<const TensorSpec> leaves) {
  Padding padding;
  for (int c = 0; c < shapes.size(); ++c) {
    PENSTOCK_ASSIGN_OR_RETURN(PartialShape shape, plan::FromProto(shapes[c]));
    PENSTOCK_ASSIGN_OR_RETURN(Column item, plan::FromProto(items[c]));
    padding.is_counted.push_back(MayPad(leaves[c].shape, shape));
    padding.shapes.push_back(std::move(shape));
    padding.items.push_back(std::move(item));
  }
  return padding;
}

absl::StatusOr<Chunk> PadRows(const Chunk& rows, const Padding& padding,
                              absl::Span<const int64_t> lengths,
                              NodeStats& stats) {
  Chunk batch;
  batch.rows = 1;
  for (size_t c = 0; c < rows.columns.size(); ++c) {
    PENSTOCK_ASSIGN_OR_RETURN(
        batch.columns.emplace_back(),
        PadAndStack(rows.columns[c], padding.shapes[c], padding.items[c]));
  }
  if (stats.is_counting) Count(rows, batch, padding, lengths, stats.padding);
  return batch;
}

}  // namespace penstock::engine
