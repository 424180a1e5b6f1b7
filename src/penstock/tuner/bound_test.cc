#include "penstock/tuner/bound.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/tuner/histogram.h"
#include "penstock/tuner/measured_testing.h"

namespace penstock::tuner {
namespace {

TestRun Chain() {
  TestRun run;
  run.nodes = {Source(), Map("map", 1e-3), Batch()};
  run.cores = 4;
  return run;
}

TEST(FindBound, NamesTheWallAndTheNext) {
  const Bound bound = FindBound(ModelOf(Chain()), KnobsAre::kInForce);
  EXPECT_EQ(bound.wall().wall, Wall::kTasks);
  EXPECT_NEAR(bound.rate.middle, 1 / 0.064, 0.1);
  EXPECT_EQ(bound.limits[1].wall, Wall::kCores);
  EXPECT_NEAR(bound.next_wall_gain(), 3, 0.1);
  EXPECT_LE(bound.rate.low, bound.rate.middle);
  EXPECT_GE(bound.rate.high, bound.rate.middle);
}

TEST(FindBound, FreeKnobsUseAllCores) {
  const Bound bound = FindBound(ModelOf(Chain()), KnobsAre::kFree);
  EXPECT_EQ(bound.wall().wall, Wall::kCores);
  // Four cores, less 6 % that four tasks lose to each other.
  EXPECT_NEAR(bound.rate.middle, 4 / 0.064 / 1.06, 1);
  EXPECT_GT(bound.rate.high, bound.rate.middle);
  EXPECT_LT(bound.rate.low, bound.rate.middle);
}

TEST(FindBound, WhatTheUserPinnedStays) {
  TestRun run = Chain();
  run.nodes[1].parallelism = 2;
  run.nodes[1].chosen_by = plan::USER;
  const Bound bound = FindBound(ModelOf(run), KnobsAre::kFree);
  EXPECT_EQ(bound.wall().wall, Wall::kTasks);
}

TEST(FindBound, InlineNodesShareATask) {
  TestRun run = Chain();
  run.nodes[0].cpu_seconds = 1e-3;
  for (TestNode& node : run.nodes) node.stage = 7;
  const Bound bound = FindBound(ModelOf(run), KnobsAre::kInForce);
  EXPECT_EQ(bound.wall().wall, Wall::kStage);
  EXPECT_NEAR(bound.rate.middle, 1 / 0.128, 0.1);
}

TEST(FindBound, WithNoDemandThereIsNoLimit) {
  TestRun run = Chain();
  for (TestNode& node : run.nodes) node.cpu_seconds = 0;
  const Bound bound = FindBound(ModelOf(run), KnobsAre::kInForce);
  EXPECT_EQ(bound.rate.middle, kUnlimitedRate);
  EXPECT_EQ(bound.wall().wall, Wall::kNothing);
}

TEST(FindBound, WithoutABufferBothTakeTurns) {
  TestRun run = Chain();
  run.consumer_seconds = 0.064;
  run.output_rows = 0;
  const Model model = ModelOf(run);
  EXPECT_NEAR(FindBound(model, KnobsAre::kInForce).rate.middle, 1 / 0.128, 0.1);
  run.output_rows = 4;
  EXPECT_NEAR(FindBound(ModelOf(run), KnobsAre::kInForce).rate.middle,
              1 / 0.064, 0.2);
}

// A row takes 10 µs, and so does waking up for two of them, nearly.
TEST(FindBound, AFewRowsAtATimeAreWaitedFor) {
  TestRun run;
  TestNode ahead = Map("ahead", 0, 1000, 1);
  ahead.is_sequential = true;
  ahead.buffer_rows = 2;
  run.nodes = {Source(1000, 1), Map("map", 10e-6, 1000, 1), ahead};
  run.cores = 8;
  const Bound bound = FindBound(ModelOf(run), KnobsAre::kInForce);
  EXPECT_EQ(bound.wall().wall, Wall::kHandOver);
  EXPECT_NEAR(bound.rate.middle, 1 / (10e-6 + kWakeSeconds / 2), 500);
  // Cores that are just enough have nothing else to do meanwhile; fewer have.
  run.cores = 0.95;
  EXPECT_EQ(FindBound(ModelOf(run), KnobsAre::kInForce).wall().wall,
            Wall::kHandOver);
  run.cores = 0.5;
  EXPECT_EQ(FindBound(ModelOf(run), KnobsAre::kInForce).wall().wall,
            Wall::kCores);
  run.cores = 8;
  run.nodes[2].buffer_rows = 200;
  const Bound deep = FindBound(ModelOf(run), KnobsAre::kInForce);
  EXPECT_NEAR(deep.rate.middle, 1e5, 1500);
  // A wait that nobody feels is not what is in the way.
  for (const Limit& limit : deep.limits) {
    EXPECT_NE(limit.wall, Wall::kHandOver);
  }
}

// Where the user said nothing, the engine's own window is in force.
TEST(FindBound, SlowRowsHoldUpTheEnginesOwnWindow) {
  TestRun run = Chain();
  run.nodes[1].parallelism = 4;
  run.nodes[1].rows_per_chunk = 1;
  run.nodes[1].slow_share = 0.01;
  run.nodes[1].slow_factor = 100;
  const Bound own = FindBound(ModelOf(run), KnobsAre::kInForce);
  EXPECT_EQ(own.wall().wall, Wall::kReorder);
  run.nodes[1].reorder_rows = 1024;
  EXPECT_GT(FindBound(ModelOf(run), KnobsAre::kInForce).rate.middle,
            1.3 * own.rate.middle);
}

// A file that is one read has no second one to be under way.
TEST(FindBound, SmallFilesAreOneReadEach) {
  TestRun run = Chain();
  TestNode& source = run.nodes[0];
  source.read_bytes = 1000;
  source.read_seconds = 0.02;
  source.read_depth = 64;
  source.read_sources = 16;
  const double deep = FindBound(ModelOf(run), KnobsAre::kInForce).rate.middle;
  source.files.emplace();
  source.files->set_opened(100);
  source.files->set_opened_bytes(100 * 1000);
  const Bound bound = FindBound(ModelOf(run), KnobsAre::kInForce);
  EXPECT_EQ(bound.wall().wall, Wall::kReadLatency);
  EXPECT_EQ(bound.wall().capacity, 16);
  EXPECT_LT(bound.rate.middle, deep);
}

TEST(FindBound, NoisierWindowsGiveWiderIntervals) {
  TestRun run = Chain();
  const auto width = [](const TestRun& each) {
    const Interval rate = FindBound(ModelOf(each), KnobsAre::kInForce).rate;
    return (rate.high - rate.low) / rate.middle;
  };
  const double quiet = width(run);
  run.windows = 1;  // one window says little
  EXPECT_GT(width(run), quiet + 0.2);
}

TEST(CoresAt, RisesWithTheRate) {
  const Model model = ModelOf(Chain());
  EXPECT_NEAR(CoresAt(model, 10), 0.64, 0.02);
  EXPECT_GT(CoresAt(model, 40), 4 * CoresAt(model, 10));
}

TEST(TasksInWindow, IsAllOfThemWhereRowsAreAlike) {
  plan::Histogram even;
  for (int b = 0; b < 10; ++b) even.add_counts(b == 9 ? 1000 : 0);
  EXPECT_NEAR(TasksInWindow(even, 8, 16), 8, 0.01);
  EXPECT_EQ(TasksInWindow({}, 8, 16), 8);
}

TEST(TasksInWindow, GrowsWithTheWindow) {
  plan::Histogram tail;
  for (int b = 0; b < 21; ++b) {
    tail.add_counts(b == 14 ? 990 : b == 20 ? 10 : 0);
  }
  double last = 0;
  for (double rows : {8, 16, 64, 256, 1024}) {
    const double tasks = TasksInWindow(tail, 8, rows);
    EXPECT_GE(tasks, last);
    last = tasks;
  }
  EXPECT_LT(TasksInWindow(tail, 8, 8), 5);
  EXPECT_NEAR(last, 8, 0.01);
}

TEST(Histogram, TellsSpreadAndTail) {
  plan::Histogram histogram;
  for (int b = 0; b < 11; ++b) {
    histogram.add_counts(b == 4 ? 98 : b == 10 ? 2 : 0);
  }
  const Spread spread = SpreadOf(histogram);
  EXPECT_EQ(spread.count, 100);
  EXPECT_NEAR(spread.mean, 0.98 * 12 + 0.02 * 768, 1e-9);
  EXPECT_GT(spread.cv, 3);
  EXPECT_EQ(Quantile(histogram, 0.5), 12);
  EXPECT_EQ(Quantile(histogram, 0.99), 768);
  EXPECT_NEAR(MeanOf(histogram), spread.mean, 1e-9);
  EXPECT_NEAR(TailAbove(histogram, 100).mean_excess, 0.02 * 668, 1e-9);
  EXPECT_NEAR(TailAbove(histogram, 100).share, 0.02, 1e-9);
  EXPECT_EQ(SpreadOf({}).cv, 0);
  EXPECT_EQ(Quantile({}, 0.5), 0);
}

}  // namespace
}  // namespace penstock::tuner
