#include "penstock/plan/token_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/expect.h"

namespace penstock::plan {

std::vector<int64_t> BatchSizesOf(const BucketBySequenceLength& op) {
  const auto size = [&op](int64_t length) {
    return std::max<int64_t>(1, op.max_tokens() / std::max<int64_t>(1, length));
  };
  std::vector<int64_t> sizes;
  int64_t last = 1;
  for (int64_t boundary : op.boundaries()) {
    // INT64_MIN less one is no number; nothing is that short.
    sizes.push_back(size(std::max<int64_t>(1, boundary) - 1));
    last = boundary;
  }
  sizes.push_back(size(last));
  return sizes;
}

absl::Status CheckBudget(const BucketBySequenceLength& op) {
  if (!op.has_max_tokens()) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(AtLeast("max_tokens", op.max_tokens(), 1));
  const std::vector<int64_t> sizes = BatchSizesOf(op);
  if (!std::equal(sizes.begin(), sizes.end(), op.batch_sizes().begin(),
                  op.batch_sizes().end())) {
    return absl::InvalidArgumentError(
        "bucket_by_sequence_length takes either bucket_batch_sizes or "
        "max_tokens; got both");
  }
  const bool has_longest =
      op.pad_to_boundary() && !op.no_padding() && op.boundaries_size() > 0;
  if (!has_longest) return absl::OkStatus();
  const int64_t boundary = *op.boundaries().rbegin();
  if (boundary <= op.max_tokens() + 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "with pad_to_bucket_boundary, max_tokens must be at least the length "
      "that the last boundary pads to, ",
      boundary - 1, "; got ", op.max_tokens(),
      "\n  Raise max_tokens, or leave boundaries over it out."));
}

}  // namespace penstock::plan
