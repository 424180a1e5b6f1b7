#include "penstock/tuner/what_if.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/tuner/measured_testing.h"

namespace penstock::tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

TestRun Chain() {
  TestRun run;
  TestNode read = Source(100e3);
  read.read_bytes = 100e3;
  run.nodes = {read, Map("decode", 1e-3, 600e3), Map("augment", 1e-3, 600e3),
               Batch(64, 600e3 * 64)};
  run.cores = 4;
  run.disk_bytes_per_second = 250e6;
  run.consumer_seconds = 1e-3;
  return run;
}

double RateOf(const Model& model, const std::vector<Change>& changes,
              KnobsAre knobs = KnobsAre::kInForce) {
  const absl::StatusOr<Bound> bound = WhatIf(model, changes, knobs);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return bound.ok() ? bound->rate.middle : 0;
}

TEST(WhatIf, NothingChangesNothing) {
  const Model model = ModelOf(Chain());
  for (KnobsAre knobs : {KnobsAre::kInForce, KnobsAre::kFree}) {
    const Bound now = FindBound(model, knobs);
    const absl::StatusOr<Bound> then = WhatIf(model, {}, knobs);
    ASSERT_TRUE(then.ok());
    EXPECT_EQ(now.rate.low, then->rate.low);
    EXPECT_EQ(now.rate.middle, then->rate.middle);
    EXPECT_EQ(now.rate.high, then->rate.high);
  }
}

TEST(WhatIf, ChangesCompose) {
  const Model model = ModelOf(Chain());
  const double now = RateOf(model, {});
  EXPECT_NEAR(now, 1 / 0.064, 0.1);
  // The other map is as slow; only both together help.
  EXPECT_NEAR(RateOf(model, {SetTasks{1, 2}}), now, 0.1);
  EXPECT_GT(RateOf(model, {SetTasks{1, 2}, SetTasks{2, 2}}), 1.9 * now - 1);
  // Then the disk is the limit, until it is faster.
  const std::vector<Change> four = {SetCores{16}, SetTasks{1, 4},
                                    SetTasks{2, 4}};
  EXPECT_NEAR(RateOf(model, four), 250e6 / 6.4e6, 0.1);
  std::vector<Change> faster = four;
  faster.push_back(ScaleDisk{10});
  EXPECT_GT(RateOf(model, faster), 3.5 * now);
}

// What is asked about is as it is asked, and all else as good as it can be.
TEST(WhatIf, WhatIsSetIsNotFree) {
  TestRun run = Chain();
  run.disk_bytes_per_second = 1e12;
  const Model model = ModelOf(run);
  const double best = RateOf(model, {}, KnobsAre::kFree);
  EXPECT_NEAR(RateOf(model, {SetTasks{1, 1}}, KnobsAre::kFree), 1 / 0.064, 0.1);
  EXPECT_GT(best, 1.5 / 0.064);
  run.nodes[0].read_depth = 4;
  run.nodes[0].read_seconds = 1e-3;
  const Model reading = ModelOf(run);
  EXPECT_NEAR(RateOf(reading, {SetReadDepth{0, 1}}, KnobsAre::kFree), 1 / 0.064,
              0.1);
}

TEST(WhatIf, ACacheTakesAwayWhatIsBelow) {
  const Model model = ModelOf(Chain());
  const CacheAfter all = {2, plan::MEMORY, 1, 1e9};
  absl::StatusOr<Model> cached = Apply(model, {all});
  ASSERT_TRUE(cached.ok());
  EXPECT_EQ(cached->nodes[0].disk_bytes.value, 0);
  EXPECT_EQ(cached->nodes[1].cpu.value, 0);
  EXPECT_TRUE(cached->nodes[1].is_cached);
  EXPECT_LT(cached->nodes[2].cpu.value, 0.2 * model.nodes[2].cpu.value);
  EXPECT_EQ(cached->cache_memory_bytes, 1e9);
  cached = Apply(model, {CacheAfter{2, plan::DISK, 0.5, 1e9}});
  EXPECT_NEAR(cached->nodes[1].cpu.value, 0.5 * model.nodes[1].cpu.value, 1e-9);
  EXPECT_NEAR(cached->nodes[2].disk_bytes.value, 0.5 * 64 * 600e3, 1);
  EXPECT_EQ(cached->cache_disk_bytes, 0.5e9);
}

TEST(WhatIf, KeptRowsAreCopiedIntoTheirBatch) {
  TestRun run = Chain();
  run.nodes[3].cpu_seconds = 10e-6;  // of 38 MB: rows are computed in place
  const Model model = ModelOf(run);
  const auto batch_with = [&](const Model& of, const CacheAfter& cache) {
    const absl::StatusOr<Model> cached = Apply(of, {cache});
    EXPECT_TRUE(cached.ok());
    return cached.ok() ? cached->nodes[3].busy.value : 0;
  };
  EXPECT_NEAR(batch_with(model, {2, plan::MEMORY, 1, 1e9}), 38.4e6 / 12e9,
              1e-6);
  // A map between writes them where they belong, as before.
  EXPECT_NEAR(batch_with(model, {1, plan::MEMORY, 1, 1e9}), 10e-6, 1e-6);
  run.memory_bytes_per_second = 50e9;
  EXPECT_NEAR(batch_with(ModelOf(run), {2, plan::MEMORY, 1, 1e9}),
              38.4e6 / 25e9, 1e-6);
  // Who copied before does not copy twice.
  run.nodes[3].cpu_seconds = 10e-3;
  EXPECT_NEAR(batch_with(ModelOf(run), {2, plan::MEMORY, 1, 1e9}), 10e-3, 1e-5);
}

// Memory and storage cost what no node is charged with; who keeps rows needs
// less of both.
TEST(WhatIf, ACacheTakesAwayWhatNobodyIsChargedWithToo) {
  TestRun run = Chain();
  run.unattributed_seconds = 20e-3;
  const Model model = ModelOf(run);
  const absl::StatusOr<Model> cached =
      Apply(model, {CacheAfter{2, plan::MEMORY, 1, 1e9}});
  ASSERT_TRUE(cached.ok());
  EXPECT_LT(cached->unattributed.value, 0.1 * model.unattributed.value);
  const absl::StatusOr<Model> half =
      Apply(model, {CacheAfter{2, plan::MEMORY, 0.5, 1e9}});
  ASSERT_TRUE(half.ok());
  EXPECT_NEAR(half->unattributed.value, 0.5 * model.unattributed.value,
              0.05 * model.unattributed.value);
}

// What two threads cost that wake each other for each batch goes with a deeper
// buffer; what nobody knows stays.
TEST(WhatIf, ADeepBufferWakesFewer) {
  TestRun run;
  TestNode ahead = Map("ahead", 0, 1000, 1);
  ahead.is_sequential = true;
  ahead.buffer_rows = 2;
  ahead.rows_per_chunk = 1;
  run.nodes = {Source(1000, 1), Map("map", 10e-6, 1000, 1), ahead};
  run.cores = 1;
  run.rate = 4e4;
  run.unattributed_seconds = 10e-6;
  const Model model = ModelOf(run);
  EXPECT_NEAR(FindBound(model, KnobsAre::kInForce).rate.middle, 1 / 21e-6,
              0.1 / 21e-6);
  EXPECT_NEAR(RateOf(model, {SetBufferRows{2, 100}}), 1 / 11.2e-6,
              0.1 / 11.2e-6);
}

TEST(WhatIf, FusedNodesHandNothingOver) {
  TestRun run = Chain();
  run.nodes[1].parallelism = 2;
  run.unattributed_seconds = 64 * 10e-6;
  const Model model = ModelOf(run);
  const absl::StatusOr<Model> fused = Apply(model, {Fuse{2}});
  ASSERT_TRUE(fused.ok());
  EXPECT_FALSE(fused->nodes[1].hands_over);
  EXPECT_EQ(fused->nodes[1].cpu.value, 0);
  EXPECT_NEAR(fused->nodes[2].cpu.value,
              model.nodes[1].cpu.value + model.nodes[2].cpu.value, 1e-9);
}

TEST(WhatIf, AFasterConsumerTakesMore) {
  TestRun run = Chain();
  run.consumer_seconds = 1;
  const Model model = ModelOf(run);
  EXPECT_NEAR(RateOf(model, {}), 1, 0.01);
  EXPECT_NEAR(RateOf(model, {ScaleConsumer{3}}), 3, 0.03);
}

TEST(WhatIf, RefusesWhatMeansNothing) {
  const Model model = ModelOf(Chain());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<Change, std::string>> cases = {
      {SetTasks{99, 2}, "must be one of the model's; got 99"},
      {SetTasks{1, 0}, "tasks must be over 0"},
      {SetTasks{0, 2}, "is sequential"},
      {SetCores{-1}, "cores must be over 0"},
      {SetCores{nan}, "cores must be over 0"},
      {ScaleDisk{0}, "disk factor"},
      {CacheAfter{1, plan::MEMORY, 1.5, 1}, "fraction in (0, 1]"},
      {CacheAfter{1, plan::MEMORY, nan, 1}, "fraction in (0, 1]"},
      {Fuse{0}, "must have one input"},
  };
  for (const auto& [change, want] : cases) {
    const absl::Status status = Apply(model, {change}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << want;
    EXPECT_THAT(std::string(status.message()), HasSubstr(want));
  }
}

TEST(OnlyBelow, LeavesOutWhatOthersNeed) {
  TestRun run;
  // read -> a, read -> b, zip(a, b)
  TestNode a = Map("a", 1e-3);
  TestNode b = Map("b", 1e-3);
  b.inputs = std::vector<uint32_t>{0};
  TestNode zip = Map("zip", 1e-6);
  zip.op = plan::Node::kZip;
  zip.inputs = std::vector<uint32_t>{1, 2};
  run.nodes = {Source(), a, b, zip};
  const Model model = ModelOf(run);
  EXPECT_THAT(OnlyBelow(model, PlaceOf(model, "a")), ElementsAre());
  EXPECT_THAT(OnlyBelow(model, PlaceOf(model, "zip")),
              UnorderedElementsAre(0, 1, 2));
}

// Of 1,000 nodes against 100: about ten times, not a hundred.
TEST(WhatIf, CostsInProportionToTheNodes) {
  const auto seconds = [](int nodes) {
    TestRun run;
    run.nodes = {Source()};
    for (int i = 0; i < nodes; ++i) {
      run.nodes.push_back(Map(absl::StrCat("map_", i), 1e-5));
      run.nodes.back().parallelism = 2;
      run.nodes.back().reorder_rows = 64;
    }
    const Model model = ModelOf(run);
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 20; ++i) {
      const auto start = std::chrono::steady_clock::now();
      for (int j = 0; j < 10; ++j) {
        EXPECT_GT(RateOf(model, {SetTasks{5, 4}, SetCores{8},
                                 CacheAfter{7, plan::MEMORY, 0.5, 1e6}}),
                  0);
      }
      const std::chrono::duration<double> time =
          std::chrono::steady_clock::now() - start;
      best = std::min(best, time.count() / 10);
    }
    return best;
  };
  const double small = seconds(100);
  const double large = seconds(1000);
  RecordProperty("microseconds_for_1000_nodes", static_cast<int>(large * 1e6));
  EXPECT_LT(large, 40 * small) << large * 1e6 << " us";
}

}  // namespace
}  // namespace penstock::tuner
