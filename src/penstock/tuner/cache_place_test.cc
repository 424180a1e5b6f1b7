#include "penstock/tuner/cache_place.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/tuner/measured_testing.h"

namespace penstock::tuner {
namespace {

using testing::HasSubstr;

// read (10 GB) -> decode (60 GB) -> crop (20 GB) -> batch (20 GB).
TestRun Shrinking() {
  TestRun run;
  TestNode read = Source(100e3);
  TestNode decode = Map("decode", 1e-3, 600e3);
  TestNode crop = Map("crop", 0.1e-3, 200e3);
  TestNode batch = Batch(64, 64 * 200e3);
  read.cardinality = decode.cardinality = crop.cardinality = 100'000;
  batch.cardinality = 100'000 / 64;
  run.nodes = {read, decode, crop, batch};
  return run;
}

const CacheCandidate& OfNode(const CachePlan& plan, int node) {
  for (const CacheCandidate& candidate : plan.candidates) {
    if (candidate.node == node) return candidate;
  }
  ADD_FAILURE() << "not looked at: " << node;
  return plan.candidates[0];
}

TEST(PlaceCache, TakesTheLastOfThoseWithRowsOfOneSize) {
  const Model model = ModelOf(Shrinking());
  const CachePlan plan = PlaceCache(model, {.memory_bytes = 30e9});
  ASSERT_TRUE(plan.best);
  EXPECT_EQ(plan.best->node, PlaceOf(model, "batch"));
  EXPECT_EQ(plan.best->cache->fraction, 1);
  EXPECT_FALSE(OfNode(plan, PlaceOf(model, "crop")).cache);
}

TEST(PlaceCache, TakesAPartWhereThereIsNoRoomForAll) {
  const Model model = ModelOf(Shrinking());
  const CachePlan plan = PlaceCache(model, {.memory_bytes = 8e9});
  ASSERT_TRUE(plan.best);
  EXPECT_EQ(plan.best->node, PlaceOf(model, "batch"));
  EXPECT_NEAR(plan.best->cache->fraction, 0.4, 0.01);
}

TEST(PlaceCache, SaysWhyNot) {
  TestRun run = Shrinking();
  CachePlan plan = PlaceCache(ModelOf(run), {.memory_bytes = 1e6});
  EXPECT_FALSE(plan.best);
  EXPECT_THAT(OfNode(plan, 3).why_not, HasSubstr("no room"));
  run.nodes[3].cardinality.reset();
  plan = PlaceCache(ModelOf(run), {.memory_bytes = 1e12});
  EXPECT_THAT(OfNode(plan, 3).why_not, HasSubstr("size is not known"));
  EXPECT_EQ(plan.best->node, 2);
  run.nodes[1].is_random = true;
  plan = PlaceCache(ModelOf(run), {.memory_bytes = 1e12});
  EXPECT_THAT(OfNode(plan, 2).why_not, HasSubstr("decode gives other rows"));
}

TEST(PlaceCache, IsNoneWhereItWouldNotHelp) {
  TestRun run = Shrinking();
  run.consumer_seconds = 10;  // the limit, whatever is cached
  EXPECT_FALSE(PlaceCache(ModelOf(run), {.memory_bytes = 1e12}).best);
}

TEST(PlaceCache, PromisesNothingOfADiskItDoesNotKnow) {
  TestRun run = Shrinking();
  const CacheRoom room = {.memory_bytes = 0, .disk_bytes = 1e12};
  EXPECT_FALSE(PlaceCache(ModelOf(run), room).best);
  run.disk_bytes_per_second = 10e9;
  const CachePlan plan = PlaceCache(ModelOf(run), room);
  ASSERT_TRUE(plan.best);
  EXPECT_EQ(plan.best->cache->tier, plan::DISK);
}

}  // namespace
}  // namespace penstock::tuner
