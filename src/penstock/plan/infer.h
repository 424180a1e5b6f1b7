// The rules of every operator: what a node makes of its inputs, or why it may
// not. The builder and the validator both ask here, so there is one truth.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/spec.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// How deep functions that make datasets nest, at most.
inline constexpr int kMaxFunctionDepth = 6;

// Where a node stands: all that its rules may look at besides itself.
struct Place {
  absl::Span<const penstock::ElementSpec> inputs;
  // Specs of the enclosing sub-plan's bound values.
  absl::Span<const penstock::TensorSpec> bound;
  // Functions around the plan that the node is in.
  int depth = 0;
};

// The spec of the node's elements. Checks all of the node that does not depend
// on values known only when it runs: parameters, inputs, functions and the
// datasets that functions make. The node's own `output` is not looked at.
absl::StatusOr<penstock::ElementSpec> InferOutput(const Node& node,
                                                  const Place& place);

// The same for a plan as a whole, `depth` functions deep: checks every node and
// gives the root's spec. Errors are located.
absl::StatusOr<penstock::ElementSpec> InferPlan(const Plan& plan, int depth);

// The state that the function of a scan or reduce is called with: that of the
// beginning, its shapes as wide as they become in later calls.
absl::StatusOr<penstock::ElementSpec> InferState(const Scan& op,
                                                 const Place& place);
absl::StatusOr<penstock::ElementSpec> InferState(const Reduce& op,
                                                 const Place& place);

// Whether the node keeps something that its iterators share (a cache, a
// sequence of random numbers), and so needs an instance.
bool NeedsInstance(const Node& node);

// All functions of the node, in the order of its message; of those that may be
// left out, unset ones too.
std::vector<const Function*> FunctionsOf(const Node& node);

// Whether the user's Python computes all that the function gives: there are no
// steps that know some of it.
inline bool IsPython(const Function& function) {
  return function.has_python() && function.steps().empty();
}

// The function of the node that makes datasets, or null.
const Function* DatasetFunctionOf(const Node& node);

// One per kind of operator; called by InferOutput alone.
namespace infer {

using Result = absl::StatusOr<penstock::ElementSpec>;

// Sources (infer_source.cc).
Result Of(const Range& op, const Place& place);
Result Of(const Counter& op, const Place& place);
Result Of(const Random& op, const Place& place);
Result Of(const Rows& op, const Place& place);
Result Of(const Values& op, const Place& place);
Result Of(const Generator& op, const Place& place);
Result Of(const ListFiles& op, const Place& place);
Result Of(const ReadFiles& op, const Place& place);
Result Of(const NestedRows& op, const Place& place);
Result Of(const Received& op, const Place& place);

// Rows kept, dropped, joined and moved (infer_rows.cc).
Result Of(const Zip& op, const Place& place);
Result Of(const Window& op, const Place& place);
Result Of(const SampleFromDatasets& op, const Place& place);
Result Of(const ChooseFromDatasets& op, const Place& place);
Result Of(const Unique& op, const Place& place);
Result Of(const AssertCardinality& op, const Place& place);
Result Of(const Concatenate& op, const Place& place);
Result Of(const Shuffle& op, const Place& place);
Result Of(const Repeat& op, const Place& place);
Result Of(const Take& op, const Place& place);
Result Of(const Skip& op, const Place& place);
Result Of(const Shard& op, const Place& place);
Result Of(const Enumerate& op, const Place& place);
Result Of(const Prefetch& op, const Place& place);
Result Of(const Cache& op, const Place& place);
Result Of(const IgnoreErrors& op, const Place& place);
Result Of(const WithOptions& op, const Place& place);

// Batches (infer_batch.cc).
Result Of(const Batch& op, const Place& place);
Result Of(const PaddedBatch& op, const Place& place);
Result Of(const Unbatch& op, const Place& place);
Result Of(const Rebatch& op, const Place& place);
Result Of(const RaggedBatch& op, const Place& place);
Result Of(const SparseBatch& op, const Place& place);
Result Of(const Pack& op, const Place& place);

// Functions (infer_function.cc).
Result Of(const Map& op, const Place& place);
Result Of(const Filter& op, const Place& place);
Result Of(const TakeWhile& op, const Place& place);
Result Of(const FlatMap& op, const Place& place);
Result Of(const Interleave& op, const Place& place);
Result Of(const Scan& op, const Place& place);
Result Of(const Reduce& op, const Place& place);
Result Of(const GroupByWindow& op, const Place& place);
Result Of(const BucketBySequenceLength& op, const Place& place);
Result Of(const BatchByTokens& op, const Place& place);

}  // namespace infer
}  // namespace penstock::plan
