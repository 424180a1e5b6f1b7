#include "penstock/tuner/bucket_boundaries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

namespace penstock::tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> BoundariesOf(const std::vector<LengthCount>& lengths,
                                  const BucketOptions& options) {
  const absl::StatusOr<Buckets> buckets = ChooseBoundaries(lengths, options);
  EXPECT_TRUE(buckets.ok()) << buckets.status();
  return buckets.ok() ? buckets->boundaries : std::vector<int64_t>();
}

TEST(BucketBoundariesTest, OneBucketHoldsAll) {
  EXPECT_THAT(BoundariesOf({{3, 1}, {9, 1}}, {.shapes = 1}), ElementsAre(10));
}

TEST(BucketBoundariesTest, PartsWhereItPays) {
  const std::vector<LengthCount> lengths = {
      {10, 50}, {11, 50}, {12, 50}, {100, 5}, {104, 5}};
  const Buckets buckets = *ChooseBoundaries(lengths, {.shapes = 2});
  EXPECT_THAT(buckets.boundaries, ElementsAre(13, 105));
  EXPECT_NEAR(buckets.padding_share, 1 - 2670.0 / 2840, 1e-9);
  // As many as there are lengths: no padding, and no more buckets than that.
  const Buckets all = *ChooseBoundaries(lengths, {.shapes = 20});
  EXPECT_EQ(all.boundaries.size(), 5);
  EXPECT_EQ(all.padding_share, 0);
}

TEST(BucketBoundariesTest, PadsToMultiples) {
  EXPECT_THAT(BoundariesOf({{1, 1}, {8, 1}, {9, 1}, {60, 9}},
                           {.shapes = 8, .multiple_of = 8}),
              ElementsAre(9, 17, 65));
}

TEST(BucketBoundariesTest, LeavesOutWhatABatchCannotHold) {
  EXPECT_THAT(
      BoundariesOf({{4, 1}, {10, 1}, {99, 7}}, {.shapes = 4, .max_tokens = 10}),
      ElementsAre(5, 11));
}

TEST(BucketBoundariesTest, ABatchOfAsManyIsAsGood) {
  const std::vector<LengthCount> lengths = {
      {10, 9}, {12, 9}, {500, 9}, {512, 9}};
  EXPECT_THAT(BoundariesOf(lengths, {.shapes = 3}), ElementsAre(13, 501, 513));
  // Two rows fit, of 500 as of 512: to part them would save no batch.
  EXPECT_THAT(BoundariesOf(lengths, {.shapes = 3, .max_tokens = 1024}),
              ElementsAre(11, 13, 513));
}

TEST(BucketBoundariesTest, Refuses) {
  const std::vector<LengthCount> lengths = {{3, 1}};
  const auto refusal = [](const std::vector<LengthCount>& lengths,
                          const BucketOptions& options) {
    return std::string(ChooseBoundaries(lengths, options).status().message());
  };
  EXPECT_THAT(refusal(lengths, {.shapes = 0}), HasSubstr("shapes must be"));
  EXPECT_THAT(refusal(lengths, {.multiple_of = 0}), HasSubstr("multiple_of"));
  EXPECT_THAT(refusal(lengths, {.max_tokens = 0}), HasSubstr("max_tokens"));
  EXPECT_THAT(refusal(lengths, {.max_tokens = 2}),
              HasSubstr("none that max_tokens has room for"));
  EXPECT_THAT(refusal({}, {}), HasSubstr("got none"));
  EXPECT_THAT(refusal({{-1, 1}}, {}), HasSubstr("a length must be"));
  EXPECT_THAT(refusal({{1, -1}}, {}), HasSubstr("rows must be at least 0"));
}

// What buckets that end at these targets cost.
double CostOf(const std::vector<LengthCount>& lengths,
              const std::vector<int64_t>& targets,
              const BucketOptions& options) {
  double cost = 0;
  for (const LengthCount& given : lengths) {
    const int64_t target =
        *std::lower_bound(targets.begin(), targets.end(), given.length);
    cost += given.rows *
            (options.max_tokens
                 ? static_cast<double>(*options.max_tokens) /
                       static_cast<double>(*options.max_tokens / target)
                 : static_cast<double>(target));
  }
  return cost;
}

// Every way to choose, for a few lengths.
TEST(BucketBoundariesTest, IsAsGoodAsTheBestOfAll) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int count = 1 + static_cast<int>(random() % 10);
    std::map<int64_t, double> rows;
    for (int i = 0; i < count; ++i) {
      rows[1 + static_cast<int64_t>(random() % 60)] += 1 + random() % 20;
    }
    std::vector<LengthCount> lengths;
    for (const auto& [length, number] : rows) {
      lengths.push_back({length, number});
    }
    BucketOptions options;
    options.shapes = 1 + static_cast<int64_t>(random() % 4);
    if (round % 2 == 1) options.max_tokens = 60 + random() % 400;
    double best = std::numeric_limits<double>::infinity();
    const auto longest = static_cast<uint32_t>(lengths.size() - 1);
    for (uint32_t chosen = 0; chosen < (1U << longest); ++chosen) {
      std::vector<int64_t> targets;
      for (uint32_t i = 0; i < longest; ++i) {
        if (chosen >> i & 1) targets.push_back(lengths[i].length);
      }
      targets.push_back(lengths[longest].length);
      if (static_cast<int64_t>(targets.size()) > options.shapes) continue;
      best = std::min(best, CostOf(lengths, targets, options));
    }
    std::vector<int64_t> targets = BoundariesOf(lengths, options);
    ASSERT_LE(targets.size(), options.shapes);
    for (int64_t& target : targets) --target;
    EXPECT_NEAR(CostOf(lengths, targets, options), best, 1e-5 * best)
        << "round " << round;
  }
}

TEST(BucketBoundariesTest, ManyLengths) {
  std::vector<LengthCount> lengths;
  for (int64_t i = 1; i <= 200'000; ++i) lengths.push_back({i, 1});
  const Buckets buckets = *ChooseBoundaries(lengths, {.shapes = 4});
  EXPECT_THAT(buckets.boundaries,
              ElementsAre(50'001, 100'001, 150'001, 200'001));
}

}  // namespace
}  // namespace penstock::tuner
