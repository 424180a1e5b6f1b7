#include "penstock/engine/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace penstock::engine {
namespace {

// Runs as many slices as it was told to, and counts them.
class CountingTask final : public Task {
 public:
  CountingTask(Executor* executor, std::atomic<int>* slices)
      : Task(executor), slices_(slices) {}

  std::atomic<int> wanted{0};
  std::atomic<int> done{0};

 protected:
  Next RunSlice() override {
    EXPECT_FALSE(is_running_.exchange(true)) << "two threads in one task";
    ++*slices_;
    if (done < wanted) ++done;
    const bool has_more = done < wanted;
    is_running_ = false;
    return has_more ? Next::kAgain : Next::kWait;
  }

 private:
  std::atomic<int>* const slices_;
  std::atomic<bool> is_running_{false};
};

TEST(ExecutorTest, RunsATaskUntilItWaits) {
  std::atomic<int> slices{0};
  Executor executor(2);
  auto task = std::make_shared<CountingTask>(&executor, &slices);
  task->wanted = 100;
  task->Wake();
  while (task->done < 100) std::this_thread::yield();
}

// Wake-ups from many threads: none is lost, whenever it comes.
TEST(ExecutorTest, LosesNoWakeUp) {
  std::atomic<int> slices{0};
  Executor executor(3);
  auto task = std::make_shared<CountingTask>(&executor, &slices);
  std::vector<std::thread> wakers;
  for (int t = 0; t < 3; ++t) {
    wakers.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        ++task->wanted;
        task->Wake();
      }
    });
  }
  for (std::thread& waker : wakers) waker.join();
  while (task->done < 6000) std::this_thread::yield();
}

// Tasks that wait in the queue, or want to run again, go with their executor.
TEST(ExecutorTest, EndsWithTasksLeft) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> slices{0};
    std::vector<std::weak_ptr<Task>> left;
    {
      Executor executor(2);
      for (int i = 0; i < 10; ++i) {
        auto task = std::make_shared<CountingTask>(&executor, &slices);
        task->wanted = 1 << 30;
        task->Wake();
        left.push_back(task);
      }
    }
    for (const std::weak_ptr<Task>& task : left) EXPECT_TRUE(task.expired());
  }
}

}  // namespace
}  // namespace penstock::engine
