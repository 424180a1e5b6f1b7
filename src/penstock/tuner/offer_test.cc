#include "penstock/tuner/offer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::tuner {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kSecond = 1e9;

KeptPlace Place(const std::string& node, double cpu_seconds, double bytes) {
  KeptPlace place;
  place.node = node;
  place.file = "train.py";
  place.line = 7;
  place.cpu_ns = cpu_seconds * kSecond;
  place.bytes = bytes;
  place.bytes_squared = bytes * bytes / 10;  // ten bundles of one size
  place.is_in_shares = true;
  return place;
}

// A whole pass of ten bundles.
PassWork Work(double cpu_seconds, std::vector<KeptPlace> places) {
  return {10, 10, cpu_seconds * kSecond, std::move(places)};
}

TEST(OfferTest, NamesThePlaceThatSparesMost) {
  const auto offer = OfferToKeep(
      Work(10, {Place("read_0", 1, 1e8), Place("map_1", 9, 1e9)}), "again");
  ASSERT_TRUE(offer.has_value());
  EXPECT_EQ(offer->node(), "map_1");
  EXPECT_EQ(offer->why(), "again");
  EXPECT_EQ(offer->advice(),
            "put .snapshot(\"/shared/path\") after map_1 (train.py:7)");
  EXPECT_NEAR(offer->cpu_seconds(), 8, 1e-9);
  EXPECT_NEAR(offer->cpu_share(), 0.8, 1e-9);
  EXPECT_EQ(offer->bytes_low(), 1e9);
  EXPECT_EQ(offer->bytes_high(), 1e9);
}

TEST(OfferTest, NothingWhereReadingBackCostsAsMuch) {
  EXPECT_FALSE(OfferToKeep(Work(1, {Place("map_1", 1, 0.9e9)}), ""));
  EXPECT_FALSE(OfferToKeep(Work(10, {Place("map_1", 1, 1e3)}), ""));
  EXPECT_FALSE(OfferToKeep(Work(0.1, {Place("map_1", 0.1, 1e3)}), ""));
  EXPECT_FALSE(OfferToKeep(Work(1e5, {Place("map_1", 1e5, 2e12)}), ""));
  EXPECT_FALSE(OfferToKeep(Work(10, {}), ""));
}

TEST(OfferTest, OfPartsTheSizeIsAnInterval) {
  PassWork work = Work(1, {Place("map_1", 1, 1e6)});
  work.places[0].bytes_squared *= 1.5;
  work.bundles_in_pass = 40;
  const auto offer = OfferToKeep(work, "");
  ASSERT_TRUE(offer.has_value());
  EXPECT_LT(offer->bytes_low(), 4e6);
  EXPECT_GT(offer->bytes_low(), 1e6);
  EXPECT_GT(offer->bytes_high(), 4e6);
  EXPECT_NEAR(offer->cpu_seconds(), 4, 0.1);
  work.bundles = 1;  // says nothing of the others
  EXPECT_FALSE(OfferToKeep(work, ""));
}

TEST(OfferTest, WhatTrainersGetMayStayWithThem) {
  PassWork work = Work(10, {Place("map_1", 8, 1e6), Place("batch_2", 9, 2e9)});
  work.places[1].is_in_shares = false;
  work.places[1].is_last = true;
  auto offer = OfferToKeep(work, "");
  ASSERT_TRUE(offer.has_value());
  EXPECT_EQ(offer->node(), "map_1");
  EXPECT_THAT(offer->advice(),
              HasSubstr("or .cache() after distribute(), where the trainer has "
                        "2 GB of memory"));
  work.places.erase(work.places.begin());
  offer = OfferToKeep(work, "");
  ASSERT_TRUE(offer.has_value());
  EXPECT_EQ(offer->node(), "batch_2");
  EXPECT_THAT(offer->advice(), Not(HasSubstr("snapshot")));
}

TEST(OfferTest, JobsThatRunNowShare) {
  const auto offer = OfferToShare(Work(10, {}), "both");
  ASSERT_TRUE(offer.has_value());
  EXPECT_THAT(offer->advice(), HasSubstr("share=\"auto\""));
  EXPECT_FALSE(offer->has_bytes_low());
  EXPECT_FALSE(OfferToShare(Work(0.1, {}), "both"));
}

}  // namespace
}  // namespace penstock::tuner
