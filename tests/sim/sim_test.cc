#include <cstdint>

#include "gtest/gtest.h"
#include "sim/cluster.h"
#include "sim/crowd.h"

namespace penstock::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(_GLIBCXX_TSAN) || !defined(NDEBUG)
constexpr uint64_t kSeeds = 300;
#else
constexpr uint64_t kSeeds = 20'000;
#endif

// Nothing lost, nothing twice, nothing stuck; `sim --story SEED` tells how it
// came to it.
TEST(Sim, EverySeedIsRight) {
  uint64_t items = 0, faults = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Outcome outcome = Simulate(Plan::Of(seed), false);
    ASSERT_TRUE(outcome.is_right)
        << Plan::Of(seed).ToString() << "\n  " << outcome.what;
    items += outcome.items;
    faults += outcome.faults;
  }
  // It does look at something.
  EXPECT_GT(items, 20 * kSeeds);
  EXPECT_GT(faults, 2 * kSeeds);
}

TEST(Sim, ASeedRepeats) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const Outcome once = Simulate(Plan::Of(seed), false);
    const Outcome again = Simulate(Plan::Of(seed), true);
    EXPECT_EQ(once.digest, again.digest) << seed;
    EXPECT_EQ(once.virtual_ms, again.virtual_ms) << seed;
    EXPECT_FALSE(again.story.empty());
  }
}

// Without faults, an epoch takes about as long as its trainer.
TEST(Sim, AQuietEpochIsQuick) {
  Plan plan;
  plan.seed = 7;
  plan.consumers = 2;
  const Outcome outcome = Simulate(plan, false);
  EXPECT_TRUE(outcome.is_right) << outcome.what;
  EXPECT_LT(outcome.virtual_ms, 5'000);
}

// What members of a group have in common is computed once (Cluster's check),
// and they are not slower for it.
TEST(Sim, AGroupIsComputedOnce) {
  for (const bool is_in_rounds : {false, true}) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      Plan plan;
      plan.seed = seed;
      plan.consumers = 4;
      plan.is_ordered = true;
      plan.is_shared = !is_in_rounds;
      plan.is_in_rounds = is_in_rounds;
      const Outcome outcome = Simulate(plan, false);
      EXPECT_TRUE(outcome.is_right) << plan.ToString() << "\n" << outcome.what;
      EXPECT_LT(outcome.virtual_ms, 10'000);
    }
  }
}

// What a dispatcher holds depends on who is there, not on how long they are.
TEST(Sim, NothingPilesUpWithManyWorkers) {
  Crowd crowd;
  crowd.workers = 1'000;
  crowd.jobs = 22;
  crowd.bundle_ms = 1'000;
  crowd.seconds = 30;
  const CrowdOutcome outcome = Gather(crowd);
  const Piles middle = outcome.Most(1.0 / 3, 2.0 / 3);
  const Piles end = outcome.Most(2.0 / 3, 1);
  const uint64_t readers = crowd.jobs * crowd.readers;
  EXPECT_GT(end.done - middle.done, 1'000) << outcome.ToString(crowd);
  EXPECT_LE(end.parked, crowd.workers + readers);
  EXPECT_LE(end.senders, crowd.workers + readers);
  EXPECT_LE(end.bundles, middle.bundles * 11 / 10 + 10);
  EXPECT_LE(end.records, middle.records * 11 / 10 + 10)
      << outcome.ToString(crowd);
}

}  // namespace
}  // namespace penstock::sim
