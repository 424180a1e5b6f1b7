// An operator: one node of a plan made ready to run. Constant once built, so
// any number of iterators may run it at once; what changes is in its streams.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/column.h"
#include "penstock/data/spec.h"
#include "penstock/engine/run.h"
#include "penstock/engine/stream.h"
#include "penstock/plan.pb.h"
#include "penstock/snapshot.pb.h"

namespace penstock::engine {

// What a stream is started with, besides its operator.
struct Scope {
  // Of the iterator; outlives every stream of it.
  std::shared_ptr<Run> run;
  // Values of the enclosing function, one row each, for sub-plans.
  std::shared_ptr<const std::vector<Column>> bound;
  // Which repetition (and, in sub-plans, which outer row) this is: part of
  // every random key and order that is to differ between repetitions.
  uint64_t iteration = 0;
  // What the lineage of a source's rows begins with: 0, or in a sub-plan the
  // outer row's. The same in every repetition, as the rows are.
  uint64_t lineage = 0;
  // The bound values alone, whatever the repetition: what a cache in a sub-plan
  // is kept by, and orders that stay the same.
  uint64_t binding = 0;
};

// What is the same for every operator.
struct OpInfo {
  int id = 0;  // unique in the pipeline, sub-plans included
  // The same with nodes left out that change no row (prefetch): what randomness
  // and states tell nodes apart by. Of those, that of the node before. A node
  // of a plan that was rewritten has the one that it had.
  uint64_t key = 0;
  bool is_transparent = false;
  std::string name;  // "map_2", in sub-plans "flat_map_1/map_0"
  plan::Location made_at;
  std::vector<TensorSpec> leaves;  // of its elements
  uint64_t instance = 0;           // of nodes that have one, else 0
  std::vector<int> inputs;         // ids
  plan::Snapshot::Node described;  // what is the same in every run
  plan::NodeKnobs pinned;          // by the user

  // Adds node and user's line to an error.
  absl::Status Located(const absl::Status& status) const;
};

class Operator {
 public:
  virtual ~Operator() = default;
  // A stream at its beginning, inputs' streams included.
  virtual absl::StatusOr<std::unique_ptr<Stream>> Start(
      const Scope& scope) const = 0;
};

// What a MakeX() function is given besides its spec and inputs.
struct OpContext {
  // Lives as long as the pipeline.
  const OpInfo* info;
  // Specs of the inputs' elements, whole and flat; of the bound values.
  std::vector<ElementSpec> input_specs;
  std::vector<std::vector<TensorSpec>> input_leaves;
  std::vector<TensorSpec> bound;
  // What holds large constants; null where there are none.
  RowSources* sources = nullptr;
  // Builds the plan that a function returns.
  std::function<absl::StatusOr<std::shared_ptr<const Operator>>(
      const plan::Plan&)>
      build_subplan;
};

using OperatorPtr = std::shared_ptr<const Operator>;
using OperatorOr = absl::StatusOr<OperatorPtr>;
using StreamOr = absl::StatusOr<std::unique_ptr<Stream>>;

// An operator whose streams `start` makes. What `start` holds is the operator's
// configuration: it is called by many threads and changes nothing.
OperatorPtr MakeOperator(std::function<StreamOr(const Scope&)> start);

inline NodeStats* StatsOf(const Scope& scope, const OpInfo& info) {
  return &scope.run->stats[info.id];
}

// "Not now, but soon": for an operator that has worked for a while and has
// nothing to show, so that others get their turn and an end can come through.
inline Pull Yield(const Request& request) {
  request.waker->Wake();
  return Pull::Blocked();
}

// A parameter's value: the constant, or what is bound in `scope`.
absl::StatusOr<Column> ValueOf(const plan::Value& value, const Scope& scope);
// The same, as a scalar integer of at least `min`. `what` names the parameter.
absl::StatusOr<int64_t> IntegerOf(const plan::Value& value, const Scope& scope,
                                  absl::string_view what, int64_t min);

// The rows' lineage for rows whose ordinals begin at `first`, or nothing if
// the run needs none. To be set by every source.
Buffer SourceLineage(const Scope& scope, int64_t first, int64_t rows);
// The same, beginning with `lineage` instead of the scope's: of rows that are
// counted in several parts.
Buffer SourceLineage(const Scope& scope, uint64_t lineage, int64_t first,
                     int64_t rows);

// The lineage of groups of `size` consecutive rows of `chunk`, each of which
// becomes a row.
Buffer GroupLineage(const Chunk& chunk, int64_t size);

// `chunk`'s rows with lineages mixed with `salt` (a branch, a repeat index).
void SaltLineage(Chunk& chunk, uint64_t salt);

}  // namespace penstock::engine
