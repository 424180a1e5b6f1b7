// For tests: waits until something is woken.
#pragma once

#include "penstock/base/mutex.h"
#include "penstock/engine/executor.h"

namespace penstock::service {

class Bell final : public engine::Wakeable {
 public:
  void Wake() override {
    MutexLock lock(&mutex_);
    ++rings_;
    rung_.SignalAll();
  }
  void Await() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (rings_ == 0) rung_.Wait(&mutex_);
    rings_ = 0;
  }

 private:
  Mutex mutex_;
  CondVar rung_;
  int rings_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace penstock::service
