// Pipelines as clients hand them in: what is accepted, and what it is known by.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "penstock/service.pb.h"

namespace penstock::service {

// What the store writes at once, and some bytes for the names.
inline constexpr size_t kMaxPlanBundleBytes = (size_t{256} << 20) - (1 << 20);

// What a PlanBundle is known by: 128 bits of a hash of its bytes, as hex.
std::string PlanIdOf(const std::string& bytes);

// InvalidArgument if the bytes are no PlanBundle, or its plan is not valid.
absl::Status ValidatePlanBundle(const std::string& bytes);

// InvalidArgument, located, if workers cannot share the plan as `visitation`
// needs it. REQUIRES: ValidatePlanBundle() is OK.
absl::Status ValidateShares(const std::string& bytes, Visitation visitation);

}  // namespace penstock::service
