#include "penstock/engine/padding_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::engine {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(PaddingStatsTest, AddsUp) {
  PaddingStats stats;
  stats.Add(5, 6, 1, {2, 3});
  stats.Add(4, 8, 2, {1, 3});
  stats.Add(6, 6, 1, {3, 3});
  const PaddingStats::Counts counts = stats.Get();
  EXPECT_EQ(counts.batches, 3);
  EXPECT_EQ(counts.items, 15);
  EXPECT_EQ(counts.padded_items, 20);
  EXPECT_EQ(counts.shapes, 2);
  EXPECT_THAT(counts.lengths, ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 4)));
}

TEST(PaddingStatsTest, LengthsAreCountedAsNoShorterAndLittleLonger) {
  int64_t before = -1;
  for (int64_t length = 0; length < 100'000; length += 1 + length / 100) {
    PaddingStats stats;
    stats.Add(1, 1, 1, {length});
    const int64_t counted = stats.Get().lengths[0].first;
    EXPECT_GE(counted, length);
    EXPECT_LE(counted, length + length / 32);
    EXPECT_GE(counted, before) << length;
    before = counted;
    EXPECT_TRUE(length >= 64 || counted == length) << length;
    PaddingStats again;  // the longest of a class is of that class
    again.Add(1, 1, 1, {counted});
    EXPECT_EQ(again.Get().lengths[0].first, counted);
  }
}

TEST(PaddingStatsTest, AddsToATotal) {
  auto total = std::make_shared<PaddingStats>();
  PaddingStats one;
  PaddingStats other;
  one.AddTo(total);
  other.AddTo(total);
  one.Add(1, 2, 7, {1});
  other.Add(3, 4, 7, {1});
  EXPECT_EQ(total->Get().items, 4);
  EXPECT_EQ(total->Get().padded_items, 6);
  EXPECT_EQ(total->Get().shapes, 1);
}

TEST(PaddingStatsTest, HoldsAnyLengthAndAnyNumberOfShapes) {
  PaddingStats stats;
  stats.Add(1, 1, 0, {-5, INT64_MAX});
  for (uint64_t shape = 0; shape < 2 * PaddingStats::kMaxShapes; ++shape) {
    stats.Add(1, 1, shape, {});
  }
  EXPECT_EQ(stats.Get().shapes, PaddingStats::kMaxShapes);
  EXPECT_EQ(stats.Get().lengths.size(), 2);
}

}  // namespace
}  // namespace penstock::engine
