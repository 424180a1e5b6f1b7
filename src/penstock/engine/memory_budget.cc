#include "penstock/engine/memory_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"

namespace penstock::engine {

bool MemoryBudget::Take(int64_t bytes) {
  if (used_.fetch_add(bytes) + bytes <= limit_.load()) return true;
  used_.fetch_sub(bytes);
  return false;
}

bool MemoryBudget::TakeOrReclaim(int64_t bytes, Which which) {
  if (Take(bytes)) return true;
  // What will never fit asks nothing back.
  if (reclaim_ == nullptr || bytes > limit_.load()) return false;
  reclaim_(*this, used_.load() + bytes - limit_.load(), which);
  return Take(bytes);
}

bool MemoryBudget::TryReserve(int64_t bytes) {
  return TakeOrReclaim(bytes, Which::kIdle);
}

absl::Status MemoryBudget::Reserve(int64_t bytes) {
  if (TakeOrReclaim(bytes, Which::kAll)) return absl::OkStatus();
  const int64_t limit = limit_.load();
  return absl::ResourceExhaustedError(
      absl::StrCat("needs ", bytes, " more bytes; ",
                   std::max<int64_t>(limit - used_.load(), 0),
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

bool Reservation::TryGrow(int64_t bytes) {
  if (!budget_->TryReserve(bytes - bytes_)) return false;
  bytes_ = bytes;
  return true;
}

}  // namespace penstock::engine
