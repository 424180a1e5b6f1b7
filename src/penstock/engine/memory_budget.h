// Bytes that operators which keep rows may use.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"

namespace penstock::engine {

// Counts against a limit, which may change: what is over a lowered one stays,
// but nothing is added to it. Thread-safe.
class MemoryBudget final {
 public:
  explicit MemoryBudget(int64_t limit_bytes) : limit_(limit_bytes) {}

  // ResourceExhausted, naming what is needed and what is left, if it is too
  // much; then nothing is taken.
  absl::Status Reserve(int64_t bytes);
  void Release(int64_t bytes) { used_.fetch_sub(bytes); }

  int64_t used() const { return used_.load(); }
  int64_t limit() const { return limit_.load(); }
  void SetLimit(int64_t limit_bytes) { limit_.store(limit_bytes); }

 private:
  std::atomic<int64_t> limit_;
  std::atomic<int64_t> used_{0};
};

// Bytes reserved as long as it lives, which may be longer than the iterator
// that reserved them.
class Reservation final {
 public:
  explicit Reservation(std::shared_ptr<MemoryBudget> budget)
      : budget_(std::move(budget)) {}
  ~Reservation() { budget_->Release(bytes_); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // Sets what is reserved to `bytes`.
  absl::Status Resize(int64_t bytes);
  int64_t bytes() const { return bytes_; }

 private:
  const std::shared_ptr<MemoryBudget> budget_;
  int64_t bytes_ = 0;
};

}  // namespace penstock::engine
