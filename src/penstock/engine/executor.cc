#include "penstock/engine/executor.h"

#include <algorithm>
#include <utility>

#include "penstock/engine/cpu_share.h"

namespace penstock::engine {

void Task::Wake() {
  int state = state_.load();
  while (true) {
    if (state == kQueued || state == kRunningWoken) return;
    const int next = state == kIdle ? kQueued : kRunningWoken;
    if (state_.compare_exchange_weak(state, next)) {
      if (next == kQueued) executor_->Enqueue(shared_from_this());
      return;
    }
  }
}

void Task::Run() {
  state_.store(kRunning);
  if (RunSlice() == Next::kAgain) {
    state_.store(kQueued);
    executor_->Enqueue(shared_from_this());
    return;
  }
  int expected = kRunning;
  if (state_.compare_exchange_strong(expected, kIdle)) return;
  state_.store(kQueued);  // woken meanwhile
  executor_->Enqueue(shared_from_this());
}

Executor::Executor(int num_threads) {
  for (int i = 0; i < std::max(1, num_threads); ++i) {
    threads_.emplace_back([this] { Loop(); });
  }
}

Executor::~Executor() {
  std::deque<std::shared_ptr<Task>> dropped;
  {
    MutexLock lock(&mutex_);
    is_ending_ = true;
    dropped.swap(queue_);
  }
  has_work_.SignalAll();
  for (std::thread& thread : threads_) thread.join();
}

void Executor::Enqueue(std::shared_ptr<Task> task) {
  {
    MutexLock lock(&mutex_);
    if (is_ending_) return;
    queue_.push_back(std::move(task));
  }
  has_work_.Signal();
}

void Executor::Loop() {
  while (true) {
    std::shared_ptr<Task> task;
    {
      MutexLock lock(&mutex_);
      while (queue_.empty() && !is_ending_) has_work_.Wait(&mutex_);
      if (is_ending_) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    const SliceTimer timer;
    task->Run();
  }
}

}  // namespace penstock::engine
