// Bytes that operators which keep rows may use.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"

namespace penstock::engine {

// Counts against a limit. Thread-safe.
class MemoryBudget final {
 public:
  explicit MemoryBudget(int64_t limit_bytes) : limit_(limit_bytes) {}

  // ResourceExhausted, naming what is needed and what is left, if it is too
  // much; then nothing is taken.
  absl::Status Reserve(int64_t bytes);
  void Release(int64_t bytes) { used_.fetch_sub(bytes); }

  int64_t used() const { return used_.load(); }
  int64_t limit() const { return limit_; }

 private:
  const int64_t limit_;
  std::atomic<int64_t> used_{0};
};

// Bytes reserved as long as it lives.
class Reservation final {
 public:
  explicit Reservation(MemoryBudget* budget) : budget_(budget) {}
  ~Reservation() { budget_->Release(bytes_); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // Sets what is reserved to `bytes`.
  absl::Status Resize(int64_t bytes);
  int64_t bytes() const { return bytes_; }

 private:
  MemoryBudget* const budget_;
  int64_t bytes_ = 0;
};

}  // namespace penstock::engine
