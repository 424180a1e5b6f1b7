// The threads that compute: one shared set, as many as the CPU budget has.
//
// Nothing that runs here waits. A task that cannot go on says so and returns;
// whoever makes it possible again wakes it. So a fixed number of threads can
// never deadlock, whatever waits for what.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "penstock/base/mutex.h"

namespace penstock::engine {

// Told when it is worth asking again. Thread-safe; may be told for nothing.
class Wakeable {
 public:
  virtual ~Wakeable() = default;
  virtual void Wake() = 0;
};
using Waker = std::shared_ptr<Wakeable>;

class Executor;

// Work done in slices on the executor, by one thread at a time. A wake-up that
// comes while a slice runs makes another slice follow: none is lost.
class Task : public Wakeable, public std::enable_shared_from_this<Task> {
 public:
  explicit Task(Executor* executor) : executor_(executor) {}
  void Wake() final;

 protected:
  enum class Next {
    kAgain,  // more to do; others first
    kWait,   // until someone wakes it
  };
  // Runs for about a millisecond at most.
  virtual Next RunSlice() = 0;

 private:
  friend class Executor;
  enum State : int { kIdle, kQueued, kRunning, kRunningWoken };
  void Run();

  Executor* const executor_;
  std::atomic<int> state_{kIdle};
};

// Thread-safe. Tasks that are still queued when it ends are dropped unrun.
class Executor final {
 public:
  explicit Executor(int num_threads);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  int num_threads() const { return static_cast<int>(threads_.size()); }

 private:
  friend class Task;
  void Enqueue(std::shared_ptr<Task> task) ABSL_LOCKS_EXCLUDED(mutex_);
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar has_work_;
  std::deque<std::shared_ptr<Task>> queue_ ABSL_GUARDED_BY(mutex_);
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace penstock::engine
