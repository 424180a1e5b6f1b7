// Bytes that operators which keep rows may use.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"

namespace penstock::engine {

// Counts against a limit, which may change: what is over a lowered one stays,
// but nothing is added to it. Thread-safe.
class MemoryBudget final {
 public:
  // Which of the bytes that are held without need may be asked back.
  enum class Which : uint8_t { kIdle, kAll };
  // Asks back as many bytes, or what there is. Called without locks of ours, by
  // any thread.
  using Reclaim =
      std::function<void(MemoryBudget& budget, int64_t bytes, Which which)>;

  explicit MemoryBudget(int64_t limit_bytes, Reclaim reclaim = nullptr)
      : reclaim_(std::move(reclaim)), limit_(limit_bytes) {}

  // For what a run needs: all that is held without need gives way.
  // ResourceExhausted, naming what is needed and what is left, if it is too
  // much; then nothing is taken.
  absl::Status Reserve(int64_t bytes);
  // For what it can do without: only what is idle gives way.
  bool TryReserve(int64_t bytes);
  void Release(int64_t bytes) { used_.fetch_sub(bytes); }

  int64_t used() const { return used_.load(); }
  int64_t limit() const { return limit_.load(); }
  void SetLimit(int64_t limit_bytes) { limit_.store(limit_bytes); }

 private:
  bool Take(int64_t bytes);
  bool TakeOrReclaim(int64_t bytes, Which which);

  const Reclaim reclaim_;
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
  // The same for more bytes than before, by MemoryBudget::TryReserve.
  bool TryGrow(int64_t bytes);
  int64_t bytes() const { return bytes_; }
  const MemoryBudget& budget() const { return *budget_; }

 private:
  const std::shared_ptr<MemoryBudget> budget_;
  int64_t bytes_ = 0;
};

}  // namespace penstock::engine
