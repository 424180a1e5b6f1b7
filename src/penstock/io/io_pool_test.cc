#include "penstock/io/io_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "penstock/io/drain.h"
#include "penstock/io/fake_files.h"

namespace penstock::io {
namespace {

TEST(IoPoolTest, RunsEverythingOnFewThreads) {
  IoPool pool(2);
  Alarm alarm;
  for (int i = 0; i < 100; ++i) pool.Submit(alarm.Set());
  alarm.Await(100);
}

TEST(IoPoolTest, DropsWhatHasNotBegun) {
  Alarm alarm;
  auto gate = std::make_shared<Gate>();
  {
    IoPool pool(1);
    pool.Submit([gate] { gate->Pass(); });
    gate->AwaitArrivals(1);
    // The one that runs ends when the one that waits is dropped.
    std::shared_ptr<void> token(nullptr, [gate](void*) { gate->Open(); });
    pool.Submit([token = std::move(token), wake = alarm.Set()] { wake(); });
  }
  EXPECT_EQ(alarm.num_calls(), 0);
}

}  // namespace
}  // namespace penstock::io
