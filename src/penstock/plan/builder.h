// Grows a plan by a node: the one place where pipelines are made.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

struct BuildContext {
  // Draws instance ids.
  std::function<uint64_t()> random;
};

// The plan of `node` over the roots of `inputs`, in their order. `bound` are
// the values known so far of the function that the plan is made in (empty
// outside functions); they extend those of the inputs.
//
// Checks everything that can be known before running, infers the output's spec
// and cardinality, and resolves what must not change later. Errors are
// InvalidArgument, expected first, found last, with node and user's line;
// mismatched structures and dtypes carry the payload kTypeError.
absl::StatusOr<Plan> Append(std::vector<Plan> inputs, Node node,
                            const std::vector<TensorSpec>& bound,
                            const BuildContext& context);

// Payload key on a Status: in Python this is a TypeError.
inline constexpr char kTypeError[] = "penstock/type_error";

inline constexpr int kMaxNodes = 10'000;

}  // namespace penstock::plan
