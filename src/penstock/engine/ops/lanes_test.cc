#include "penstock/engine/ops/lanes.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace penstock::engine {
namespace {

// Counts how many of its kind are at work at once.
struct Crowd {
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  std::atomic<int> done{0};
};

class CrowdTask final : public Task {
 public:
  CrowdTask(Executor* executor, Crowd& crowd, std::shared_ptr<Lanes> lanes)
      : Task(executor), crowd_(crowd), lanes_(std::move(lanes)) {}

 protected:
  Next RunSlice() override {
    const int now = ++crowd_.now;
    int most = crowd_.most;
    while (now > most && !crowd_.most.compare_exchange_weak(most, now)) {
    }
    std::this_thread::yield();
    --crowd_.now;
    lanes_->Done();
    ++crowd_.done;
    return Next::kWait;
  }

 private:
  Crowd& crowd_;
  const std::shared_ptr<Lanes> lanes_;
};

void RunAll(Executor& executor, Crowd& crowd,
            const std::shared_ptr<Lanes>& lanes, int tasks) {
  for (int i = 0; i < tasks; ++i) {
    lanes->Start(std::make_shared<CrowdTask>(&executor, crowd, lanes));
  }
  while (crowd.done < tasks) std::this_thread::yield();
}

TEST(Lanes, NoMoreAtOnceThanTheirNumber) {
  std::atomic<int64_t> knob{0};
  Crowd crowd;
  Executor executor(4);
  RunAll(executor, crowd, std::make_shared<Lanes>(knob, 2), 500);
  EXPECT_LE(crowd.most, 2);
}

TEST(Lanes, TheKnobComesFirst) {
  std::atomic<int64_t> knob{1};
  Crowd crowd;
  Executor executor(4);
  RunAll(executor, crowd, std::make_shared<Lanes>(knob, 4), 500);
  EXPECT_EQ(crowd.most, 1);
}

TEST(Lanes, ClearedTasksNeverBegin) {
  std::atomic<int64_t> knob{0};
  Crowd crowd;
  Executor executor(2);
  auto lanes = std::make_shared<Lanes>(knob, 0);  // none may run
  const auto task = std::make_shared<CrowdTask>(&executor, crowd, lanes);
  lanes->Start(task);
  EXPECT_EQ(task.use_count(), 2);
  lanes->Clear();
  EXPECT_EQ(task.use_count(), 1);
  EXPECT_EQ(crowd.done, 0);
}

}  // namespace
}  // namespace penstock::engine
