#include "penstock/tuner/buffers.h"

#include <cmath>
#include <string>

#include "gtest/gtest.h"

namespace penstock::tuner {
namespace {

struct BufferCase {
  std::string name;
  double utilisation;
  double producer_cv;
  double consumer_cv;
  int64_t want;
};

class BufferRowsTest : public testing::TestWithParam<BufferCase> {};

TEST_P(BufferRowsTest, AreByVariance) {
  const BufferCase& c = GetParam();
  EXPECT_EQ(BufferRows(c.utilisation, c.producer_cv, c.consumer_cv), c.want);
}

INSTANTIATE_TEST_SUITE_P(Rules, BufferRowsTest,
                         testing::ValuesIn<BufferCase>({
                             {"Even", 0.9, 0, 0, 2},
                             {"Idle", 0, 5, 5, 2},
                             {"Exponential", 0.8, 1, 1, 4},
                             {"Busy", 0.95, 1, 1, 19},
                             {"NeverOverThat", 1, 1, 1, 19},
                             {"Bursty", 0.9, 0, 3, 37},
                             {"NoNumberIsTooLarge", 9, 1e9, 1e9, 1805},
                         }),
                         [](const auto& info) { return info.param.name; });

TEST(OutputRows, AreWhatASlowerConsumerTakesAtOnce) {
  Model model;
  model.resources.consumer_time = Estimate{0.031, 0};
  model.resources.consumer_cv = std::sqrt(7);  // eight, then a pause
  EXPECT_EQ(OutputRows(model, 200), 8);
  model.resources.consumer_cv = 0;
  EXPECT_EQ(OutputRows(model, 200), 2);
  model.resources.consumer_cv = 1e9;
  EXPECT_EQ(OutputRows(model, 200), 101);
  // What a faster one takes is not there anyway.
  model.resources.consumer_cv = std::sqrt(7);
  EXPECT_EQ(OutputRows(model, 1), 2);
}

TEST(HandOverCpu, DeepBuffersAndTasksTakeLittle) {
  Resources resources;
  resources.wake = 16;
  resources.task_handoff = 2;
  NodeModel node;
  node.visits = 64;
  node.chunks = 16;  // of 4 rows
  EXPECT_EQ(HandOverCpu(node, resources), 0);
  node.hands_over = true;
  node.buffer_rows = 4;
  EXPECT_EQ(HandOverCpu(node, resources), 16 * 16);
  node.buffer_rows = 8;
  EXPECT_EQ(HandOverCpu(node, resources), 16 * 16);
  node.buffer_rows = 80;
  EXPECT_NEAR(HandOverCpu(node, resources), 1.6 * 16, 1e-9);
  node.buffer_rows = 0;
  node.parallelism = 2;
  EXPECT_EQ(ChunksHandedOver(node), 16);
  EXPECT_EQ(HandOverCpu(node, resources), 16 * 2);
}

TEST(HandOverRows, GrowWithTheRate) {
  EXPECT_EQ(HandOverRows(0), 2);
  EXPECT_EQ(HandOverRows(400), 2);
  EXPECT_EQ(HandOverRows(100'000), 150);
  EXPECT_EQ(HandOverRows(1e300), 1'000'000);
}

TEST(ReorderRows, AreTheLeastThatLoseLittle) {
  plan::Histogram tail;
  for (int b = 0; b < 21; ++b) {
    tail.add_counts(b == 14 ? 990 : b == 20 ? 10 : 0);
  }
  EXPECT_EQ(ReorderRows({}, 4, 4, 8, 1000), 64);
  const int64_t rows = ReorderRows(tail, 8, 8, 1, 4096);
  EXPECT_GT(rows, 64);
  EXPECT_LT(rows, 4096);
  // Who has little to do may wait.
  EXPECT_LT(ReorderRows(tail, 8, 2, 1, 4096), rows);
  EXPECT_EQ(ReorderRows(tail, 8, 0.1, 1, 4096), OwnWindowRows(8, 1));
  EXPECT_EQ(ReorderRows(tail, 8, 8, 1, 32), 32);
  EXPECT_EQ(ReorderRows(tail, 8, 8, 1, 2), 8);  // one row for each task
}

}  // namespace
}  // namespace penstock::tuner
