// Threads that only ever wait for storage.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "penstock/base/mutex.h"

namespace penstock::io {

// Runs blocking reads, so that no thread that computes has to wait for one.
// Thread-safe.
//
// Threads are started when work comes and no thread is idle, up to
// `max_threads`; they stay until the pool goes. Work is begun in the order in
// which it was submitted. The pool must outlive the streams that use it.
class IoPool final {
 public:
  explicit IoPool(size_t max_threads = 8);
  // Waits for what is running; what has not begun is dropped.
  ~IoPool();

  IoPool(const IoPool&) = delete;
  IoPool& operator=(const IoPool&) = delete;

  void Submit(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  const size_t max_threads_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t num_idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock::io
