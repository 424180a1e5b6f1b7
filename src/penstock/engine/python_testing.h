// For tests: Python functions without Python. They run in a thread of their
// own, so that those who call them have to wait.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "penstock/engine/row_function.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {

// Thread-safe. Functions are named by the captures that the plans below have.
class FakeFunctions final : public engine::RowFunctions {
 public:
  FakeFunctions();
  ~FakeFunctions() override;

  std::shared_ptr<engine::PendingRows> Call(
      const Settings& settings, Chunk input,
      std::function<void()> done) override;
  int64_t parallelism() const override { return 2; }

 private:
  class Pending;
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Pending>> queue_;  // guarded by mutex_
  bool is_ending_ = false;                      // guarded by mutex_
  std::thread thread_;
};

// Of an int64. All raise where x % 7 == 3.
plan::Function PythonDouble();  // x -> 2 * x
plan::Function PythonIsEven();  // a predicate
plan::Function PythonMod(int64_t divisor);
plan::Function PythonRunningSum();  // of a scan
plan::Function PythonSum();         // of a reduce
plan::Function PythonUpTo();        // x -> the dataset of 0, …, x - 1

}  // namespace penstock::engine_testing
