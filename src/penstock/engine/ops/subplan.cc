#include "penstock/engine/ops/subplan.h"

#include <memory>
#include <utility>
#include <vector>

#include "penstock/base/hash.h"

namespace penstock::engine {
namespace {

// A word for the value of a column of one row.
uint64_t HashValue(const Column& column, uint64_t seed) {
  for (int64_t dim : column.RowShape(0)) {
    seed = Combine(seed, static_cast<uint64_t>(dim));
  }
  const int64_t items = column.RowItems(0);
  if (column.dtype() != DType::kString) {
    const size_t size = items * ItemSize(column.dtype());
    return HashBytes({column.Row<char>(0), size}, seed);
  }
  for (int64_t i = 0; i < items; ++i) {
    seed = HashBytes(column.Row<StringRef>(0)[i].view(), seed);
  }
  return seed;
}

}  // namespace

StreamOr StartSubplan(const Operator& inner, const Chunk& values, int64_t row,
                      const Scope& scope, const OpInfo& info) {
  auto bound = std::make_shared<std::vector<Column>>();
  for (const Column& column : values.columns) {
    bound->push_back(RowOf(column, row));
  }
  Scope inside = scope;
  if (values.has_lineage()) {
    const uint64_t lineage = values.lineage.As<uint64_t>()[row];
    inside.lineage = Combine(lineage, info.key);
    inside.iteration = Combine(scope.iteration, inside.lineage);
    inside.binding = Combine(scope.binding, info.key);
    for (const Column& column : *bound) {
      inside.binding = HashValue(column, inside.binding);
    }
  }
  inside.bound = std::move(bound);
  return inner.Start(inside);
}

}  // namespace penstock::engine
