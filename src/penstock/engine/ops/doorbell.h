// Where work that runs elsewhere finds the stream's caller that waits for it.
#pragma once

#include <utility>

#include "penstock/base/mutex.h"
#include "penstock/engine/executor.h"

namespace penstock::engine {

// Thread-safe. Outlives the stream if the work does.
class Doorbell final {
 public:
  // To be set before looking whether something is done: what ends in between
  // rings then.
  void Set(const Waker& waker) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    waker_ = waker;
  }
  void Ring() ABSL_LOCKS_EXCLUDED(mutex_) {
    Waker waker;
    {
      MutexLock lock(&mutex_);
      waker = std::exchange(waker_, nullptr);
    }
    if (waker != nullptr) waker->Wake();
  }

 private:
  Mutex mutex_;
  Waker waker_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::engine
