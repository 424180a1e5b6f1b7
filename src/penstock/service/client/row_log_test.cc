#include "penstock/service/client/row_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace penstock::service {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

std::map<uint64_t, uint64_t> OpenOf(const ConsumerState& state) {
  std::map<uint64_t, uint64_t> open;
  for (const Cursor& cursor : state.open()) {
    open[cursor.bundle()] = cursor.position();
  }
  return open;
}

Finished Size(uint64_t bundle, uint64_t items) {
  Finished finished;
  finished.set_bundle(bundle);
  finished.set_items(items);
  return finished;
}

TEST(RowLogTest, RowsOfOneBundleAreOneEntry) {
  RowLog log((ConsumerState()));
  log.Add({1, 0, 3});
  log.Add({1, 3, 4});
  log.Add({2, 0, 1});
  log.Add({1, 7, 1});
  EXPECT_THAT(log.entries(), SizeIs(3));
  EXPECT_EQ(log.end(), 9);
}

TEST(RowLogTest, IsAnywhereInItsRows) {
  RowLog log((ConsumerState()));
  log.Add({1, 0, 3});
  log.Add({2, 5, 2});
  log.OnSize(Size(1, 3), 0);
  log.TrimTo(2);
  EXPECT_THAT(OpenOf(log.base()), ElementsAre(Pair(1, 2)));
  log.TrimTo(4);
  EXPECT_THAT(OpenOf(log.base()), ElementsAre(Pair(2, 6)));
  EXPECT_TRUE(BundleSet(log.base().done()).Has(1));
  log.OnSize(Size(2, 7), 5);
  EXPECT_FALSE(BundleSet(log.base().done()).Has(2));
  log.TrimTo(5);
  EXPECT_TRUE(BundleSet(log.base().done()).Has(2));
  EXPECT_THAT(log.entries(), IsEmpty());
}

// Its end may come when all of its rows were given, and some not delivered.
TEST(RowLogTest, ABundleIsDoneWhenItsRowsWereDelivered) {
  RowLog log((ConsumerState()));
  log.Add({1, 0, 3});
  log.OnSize(Size(1, 3), 0);
  EXPECT_THAT(log.base().done(), IsEmpty());
  log.TrimTo(3);
  EXPECT_TRUE(BundleSet(log.base().done()).Has(1));
}

TEST(RowLogTest, ABundleOfWhichNothingComesIsDoneAtOnce) {
  RowLog log((ConsumerState()));
  log.OnSize(Size(4, 0), 0);
  log.OnSize(Size(5, 6), 6);
  EXPECT_TRUE(BundleSet(log.base().done()).Has(4));
  EXPECT_TRUE(BundleSet(log.base().done()).Has(5));
}

TEST(RowLogTest, WhatWasPutTogetherIsDeliveredAsAWhole) {
  RowLog log((ConsumerState()));
  log.Add({1, 0, 2});
  log.BeginStitched(0, {{1, 2, 1}, {2, 9, 3}});
  log.AddStitchedRows(1);
  log.TrimTo(3);  // more rows may come of it
  EXPECT_EQ(log.begin(), 2);
  log.AddStitchedRows(1);
  log.EndStitched();
  log.TrimTo(3);
  EXPECT_EQ(log.begin(), 2);
  EXPECT_THAT(OpenOf(log.base()), ElementsAre(Pair(1, 2)));
  log.TrimTo(4);
  EXPECT_THAT(OpenOf(log.base()), ElementsAre(Pair(1, 3), Pair(2, 12)));
}

TEST(RowLogTest, GoesOnFromAMessage) {
  ConsumerState base;
  base.set_job("train");
  RowLog log(base);
  log.Add({1, 4, 3});
  log.BeginStitched(2, {{3, 0, 2}});
  log.AddStitchedRows(1);
  log.EndStitched();
  log.TrimTo(1);
  RowLog again(log.ToProto());
  EXPECT_EQ(again.begin(), 1);
  EXPECT_EQ(again.end(), 4);
  EXPECT_EQ(again.base().job(), "train");
  EXPECT_EQ(again.ToProto().SerializeAsString(),
            log.ToProto().SerializeAsString());
  const ConsumerState wanted = again.Wanted();
  EXPECT_THAT(wanted.kept(), ElementsAre(1, 3));
  EXPECT_THAT(OpenOf(wanted), ElementsAre(Pair(1, 5), Pair(3, 0)));
}

// It was begun by another, and given back: it goes on there, and not before.
TEST(RowLogTest, WantsABundleFromWhereItWasHad) {
  RowLog log(ConsumerState{});
  log.Add({1, 4, 3});
  log.BeginStitched(0, {{1, 7, 1}, {3, 2, 1}});
  log.AddStitchedRows(1);
  log.EndStitched();
  EXPECT_THAT(OpenOf(log.Wanted()), ElementsAre(Pair(1, 4), Pair(3, 2)));
  EXPECT_THAT(log.base().open(), IsEmpty());
}

// More rows come of it: who goes on elsewhere must not take it for done.
TEST(RowLogTest, AGroupThatIsOpenStaysWhole) {
  RowLog log(ConsumerState{});
  log.BeginStitched(0, {{3, 0, 2}});
  log.AddStitchedRows(1);
  RowLog again(log.ToProto());
  again.TrimTo(1);
  EXPECT_EQ(again.begin(), 0);
  log.EndStitched();
  RowLog whole(log.ToProto());
  whole.TrimTo(1);
  EXPECT_EQ(whole.begin(), 1);
}

}  // namespace
}  // namespace penstock::service
