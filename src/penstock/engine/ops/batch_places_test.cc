#include "penstock/engine/ops/batch_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::engine {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kRowBytes = 64 << 10;

Chunk Rows(int64_t rows, int64_t row_bytes = kRowBytes) {
  Chunk chunk;
  chunk.rows = rows;
  chunk.columns.push_back(ZeroColumn(DType::kUint8, {row_bytes}, rows));
  chunk.columns.push_back(MakeStringColumn(
      std::vector<std::string_view>(static_cast<size_t>(rows), "x")));
  return chunk;
}

class BatchPlacesTest : public testing::Test {
 protected:
  std::shared_ptr<FrameMemory> memory_ = FrameMemory::Make(64 << 20);
  BatchPlaces places_{memory_, {}};
};

TEST_F(BatchPlacesTest, RowsOfAGroupLieOneAfterAnother) {
  places_.Learn(Rows(1));
  const Places first = places_.Take({8, 0}, 0, 3);
  const Places second = places_.Take({8, 0}, 3, 5);
  ASSERT_EQ(first.size(), 2);
  ASSERT_EQ(second.size(), 2);
  EXPECT_EQ(first[0].size(), 3 * kRowBytes);
  EXPECT_EQ(first[1].size(), 0);  // strings have none
  EXPECT_EQ(second[0].data(), first[0].data() + first[0].size());
  EXPECT_EQ(second[0].owner(), first[0].owner());
  const Places next = places_.Take({8, 4}, 4, 1);
  ASSERT_EQ(next.size(), 2);
  EXPECT_NE(next[0].owner(), first[0].owner());
}

TEST_F(BatchPlacesTest, NothingIsKnownOfTheFirstRows) {
  EXPECT_THAT(places_.Take({8, 0}, 0, 1), IsEmpty());
}

TEST_F(BatchPlacesTest, UnlessTheirShapesAreOfThePlan) {
  const auto spec = [](DType dtype, const std::vector<int64_t>& shape) {
    return TensorSpec{dtype, PartialShape(absl::MakeConstSpan(shape))};
  };
  const std::vector<TensorSpec> known = {spec(DType::kUint8, {kRowBytes}),
                                         TensorSpec::Scalar(DType::kString)};
  const Places first = BatchPlaces(memory_, known).Take({8, 0}, 0, 3);
  ASSERT_EQ(first.size(), 2);
  EXPECT_EQ(first[0].size(), 3 * kRowBytes);
  EXPECT_EQ(first[1].size(), 0);
  const std::vector<TensorSpec> absurd = {
      spec(DType::kFloat64, {int64_t{1} << 40, int64_t{1} << 40})};
  EXPECT_THAT(BatchPlaces(memory_, absurd).Take({8, 0}, 0, 3), IsEmpty());
}

TEST_F(BatchPlacesTest, SmallGroupsHaveNone) {
  places_.Learn(Rows(1, 100));
  EXPECT_THAT(places_.Take({8, 0}, 0, 1), IsEmpty());
  EXPECT_THAT(places_.Take({0, 0}, 0, 1), IsEmpty());
}

TEST_F(BatchPlacesTest, AfterAGapItWaitsForTheNextGroup) {
  places_.Learn(Rows(1));
  EXPECT_EQ(places_.Take({8, 0}, 0, 2).size(), 2);
  // One of the two was an error: the asker has one row only.
  EXPECT_THAT(places_.Take({8, 1}, 0, 7), IsEmpty());
  EXPECT_EQ(places_.Take({8, 8}, 0, 2).size(), 2);
}

TEST_F(BatchPlacesTest, RowsOfAnotherSizeGetNoneUntilTheNextGroup) {
  places_.Learn(Rows(1));
  EXPECT_EQ(places_.Take({8, 0}, 0, 2).size(), 2);
  places_.Learn(Rows(1, 2 * kRowBytes));
  EXPECT_THAT(places_.Take({8, 0}, 2, 6), IsEmpty());
  EXPECT_EQ(places_.Take({8, 0}, 8, 2)[0].size(), 4 * kRowBytes);
}

TEST_F(BatchPlacesTest, NoPieceCrossesAGroup) {
  places_.Learn(Rows(1));
  EXPECT_EQ(places_.Limit({8, 3}, 4, 10), 1);
  EXPECT_EQ(places_.Limit({8, 3}, 5, 10), 8);
  EXPECT_EQ(places_.Limit({0, 0}, 5, 10), 10);
  places_.Learn(Rows(1, 100));  // small groups do not matter
  EXPECT_EQ(places_.Limit({8, 3}, 4, 10), 10);
}

TEST_F(BatchPlacesTest, MovesColumnsThatFit) {
  places_.Learn(Rows(1));
  const Places places = places_.Take({8, 0}, 0, 3);
  Chunk chunk = Rows(3);
  MoveTo(places, chunk);
  EXPECT_EQ(chunk.columns[0].values().data(), places[0].data());
  EXPECT_EQ(chunk.columns[0].shape(), Shape{kRowBytes});
  Chunk other = Rows(3, 5);
  const std::byte* before = other.columns[0].values().data();
  MoveTo(places, other);
  EXPECT_EQ(other.columns[0].values().data(), before);
}

TEST_F(BatchPlacesTest, WhatMayStayIsNotMoved) {
  places_.Learn(Rows(1));
  const Places places = places_.Take({8, 0, /*may_stay=*/true}, 0, 3);
  Chunk chunk = Rows(3);
  const std::byte* before = chunk.columns[0].values().data();
  MoveTo(places, chunk);
  EXPECT_EQ(chunk.columns[0].values().data(), before);
}

}  // namespace
}  // namespace penstock::engine
