#include "penstock/engine/memory_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"

namespace penstock::engine {

absl::Status MemoryBudget::Reserve(int64_t bytes) {
  const int64_t before = used_.fetch_add(bytes);
  const int64_t limit = limit_.load();
  if (before + bytes <= limit) return absl::OkStatus();
  used_.fetch_sub(bytes);
  return absl::ResourceExhaustedError(absl::StrCat(
      "needs ", bytes, " more bytes; ", std::max<int64_t>(limit - before, 0),
      " are left of the memory budget of ", limit,
      "\n  Lower the window or leave the cache out, or raise "
      "Options(memory_budget=...)."));
}

absl::Status Reservation::Resize(int64_t bytes) {
  if (bytes > bytes_) {
    PENSTOCK_RETURN_IF_ERROR(budget_->Reserve(bytes - bytes_));
  } else {
    budget_->Release(bytes_ - bytes);
  }
  bytes_ = bytes;
  return absl::OkStatus();
}

}  // namespace penstock::engine
