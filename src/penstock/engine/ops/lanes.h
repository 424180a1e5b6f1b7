// Lanes: as many tasks of one stream at once as its knob says, one after
// another without asking the stream.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "penstock/base/mutex.h"
#include "penstock/engine/executor.h"
#include "penstock/engine/knobs.h"

namespace penstock::engine {

// Thread-safe. Tasks call Done() when they have ended.
class Lanes final {
 public:
  // `knob` outlives it.
  Lanes(const std::atomic<int64_t>& knob, int64_t parallelism)
      : knob_(knob), parallelism_(parallelism) {}

  int64_t limit() const { return KnobOr(knob_, parallelism_); }

  void Start(std::shared_ptr<Task> task) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      waiting_.push_back(std::move(task));
    }
    WakeNext();
  }

  void Done() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      --running_;
    }
    WakeNext();
  }

  // Tasks that have not begun never will.
  void Clear() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::deque<std::shared_ptr<Task>> dropped;
    MutexLock lock(&mutex_);
    dropped.swap(waiting_);
  }

 private:
  void WakeNext() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (true) {
      std::shared_ptr<Task> next;
      {
        MutexLock lock(&mutex_);
        if (waiting_.empty() || running_ >= limit()) return;
        ++running_;
        next = std::move(waiting_.front());
        waiting_.pop_front();
      }
      next->Wake();
    }
  }

  const std::atomic<int64_t>& knob_;
  const int64_t parallelism_;
  Mutex mutex_;
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::shared_ptr<Task>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::engine
