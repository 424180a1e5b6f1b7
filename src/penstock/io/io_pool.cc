#include "penstock/io/io_pool.h"

#include <algorithm>
#include <utility>

namespace penstock::io {

IoPool::IoPool(size_t max_threads)
    : max_threads_(std::max<size_t>(1, max_threads)) {}

IoPool::~IoPool() {
  std::vector<std::thread> threads;
  std::deque<std::function<void()>> dropped;
  {
    MutexLock lock(&mutex_);
    is_closing_ = true;
    threads.swap(threads_);
    dropped.swap(queue_);
    changed_.SignalAll();
  }
  dropped.clear();
  for (std::thread& thread : threads) thread.join();
}

void IoPool::Submit(std::function<void()> work) {
  MutexLock lock(&mutex_);
  if (is_closing_) return;
  queue_.push_back(std::move(work));
  if (queue_.size() > num_idle_ && threads_.size() < max_threads_) {
    threads_.emplace_back([this] { Run(); });
  } else {
    changed_.Signal();
  }
}

void IoPool::Run() {
  for (;;) {
    std::function<void()> work;
    {
      MutexLock lock(&mutex_);
      ++num_idle_;
      while (queue_.empty() && !is_closing_) changed_.Wait(&mutex_);
      --num_idle_;
      if (is_closing_) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace penstock::io
