// How many elements a node makes, as far as that is known before it runs.
//
// The rules are tf.data's. Elements that are errors count: they take a place
// like any other.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/spec.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

Cardinality Finite(int64_t count);
Cardinality Infinite();
Cardinality Unknown();

bool operator==(const Cardinality& a, const Cardinality& b);
std::string ToString(const Cardinality& cardinality);  // "5", "infinite", "?"

// What follows from the node and what its inputs make: their cardinalities and
// specs, in order. REQUIRES: InferOutput (infer.h) accepts the node there.
Cardinality InferCardinality(const Node& node,
                             absl::Span<const Cardinality> inputs,
                             absl::Span<const penstock::ElementSpec> specs,
                             absl::Span<const penstock::TensorSpec> bound);

// Unknown if a bound of the range is known only when the sub-plan starts.
// InvalidArgument if there are more elements than can be counted. REQUIRES:
// constants are finite scalar numbers, and the step is not 0.
absl::StatusOr<Cardinality> CountRange(const Range& range);

}  // namespace penstock::plan
