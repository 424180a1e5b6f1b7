#include "penstock/service/dispatcher/shared_table.h"

#include "gtest/gtest.h"

namespace penstock::service {
namespace {

TEST(SharedTableTest, KnowsTheLastOnes) {
  SharedTable table;
  EXPECT_FALSE(table.first().has_value());
  const uint64_t bundles = SharedTable::kMost + 10;
  for (uint64_t i = 0; i < bundles; ++i) table.Set(i, 7);
  EXPECT_EQ(table.first(), 10);
  EXPECT_EQ(table.Find(10), 7);
  EXPECT_FALSE(table.Find(9).has_value());
  // One that is far behind has it for itself, and others of its kind do.
  table.Set(2, 8);
  EXPECT_EQ(table.Find(2), 8);
  EXPECT_FALSE(table.Find(10).has_value());
}

TEST(SharedTableTest, AChangeIsToldOnce) {
  SharedTable table;
  EXPECT_FALSE(table.TakeChanged());
  table.Set(1, 7);
  EXPECT_TRUE(table.TakeChanged());
  EXPECT_FALSE(table.TakeChanged());
  table.Set(1, 7);
  EXPECT_FALSE(table.TakeChanged());
  table.Set(1, 8);
  EXPECT_TRUE(table.TakeChanged());
}

TEST(SharedTableTest, AWorkerIsForgotten) {
  SharedTable table;
  table.Set(1, 7);
  table.Set(2, 8);
  table.Set(3, 7);
  EXPECT_TRUE(table.Forget(7));
  EXPECT_FALSE(table.Forget(7));
  EXPECT_EQ(table.first(), 2);
}

TEST(SharedTableTest, Items) {
  SharedTable table;
  table.SetItems(3, 10);
  table.SetItems(5, 20);
  EXPECT_EQ(table.ItemsIn(0, 5), 10);
  EXPECT_EQ(table.ItemsIn(0, 6), 30);
}

TEST(SharedTableTest, WhereTheOthersAre) {
  SharedTable table;
  table.SetPlace(0, ConsumerState(), 10);
  EXPECT_EQ(table.Furthest(0)->row, 10) << "its own, if there is no other";
  EXPECT_EQ(table.Furthest(1)->row, 10);
  table.SetPlace(2, ConsumerState(), 12);
  EXPECT_EQ(table.Furthest(1)->row, 12);
  EXPECT_EQ(table.Furthest(2)->row, 10);
}

}  // namespace
}  // namespace penstock::service
