// How many elements a bucket's batches have within a budget of tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// Of each bucket: as many as fit if all are as long as the bucket allows, and
// at least 1. Of the last one, which allows any length: as many as fit if all
// are as short as it allows. There the engine counts.
std::vector<int64_t> BatchSizesOf(const BucketBySequenceLength& op);

// Whether max_tokens, if it is set, goes with the rest of `op`.
// REQUIRES: boundaries that ascend.
absl::Status CheckBudget(const BucketBySequenceLength& op);

}  // namespace penstock::plan
