#include "penstock/data/stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/data/chunk_testing.h"

namespace penstock {
namespace {

using testing::ElementsAre;

Column One(int64_t value) {
  return MakeColumn<int64_t>(std::vector<int64_t>{value});
}

TEST(StackTest, RelabelsDenseRows) {
  const Column column = MakeColumn<int64_t>(std::vector<int64_t>{1, 2, 3, 4});
  const auto stacked = Stack(column, 2);
  ASSERT_TRUE(stacked.ok());
  EXPECT_EQ(stacked->values().data(), column.values().data());
  EXPECT_THAT(ToText(*stacked), ElementsAre("[1 2]", "[3 4]"));
}

TEST(StackTest, CopiesRaggedRowsOfOneShape) {
  EXPECT_THAT(ToText(*Stack(RaggedInts({{1, 2}, {3, 4}}), 2)),
              ElementsAre("[[1 2] [3 4]]"));
  EXPECT_THAT(ToText(*Stack(RaggedStrings({{"a"}, {"b"}}), 1)),
              ElementsAre("[[\"a\"]]", "[[\"b\"]]"));
}

TEST(StackTest, RefusesUnequalRows) {
  EXPECT_EQ(Stack(RaggedInts({{1, 2}, {3}}), 2).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(StackTest, OfNoRows) {
  EXPECT_EQ(Stack(RaggedInts({}), 0)->rows(), 0);
  EXPECT_EQ(Stack(ZeroColumn(DType::kInt64, {2}, 0), 3)->rows(), 0);
}

struct PadCase {
  std::string name;
  Column column;
  PartialShape shape;
  std::vector<std::string> want;  // none: refused
};

class PadTest : public testing::TestWithParam<PadCase> {};

TEST_P(PadTest, PadsToOneShape) {
  const auto padded = PadAndStack(GetParam().column, GetParam().shape, One(-1));
  ASSERT_EQ(padded.ok(), !GetParam().want.empty()) << padded.status();
  if (padded.ok()) {
    EXPECT_EQ(ToText(*padded), GetParam().want);
  }
}

const PartialShape kAnyVector(PartialShape::Dims{std::nullopt});  // NOLINT
const PartialShape kThree(PartialShape::Dims{3});                 // NOLINT

INSTANTIATE_TEST_SUITE_P(
    Columns, PadTest,
    testing::ValuesIn<PadCase>({
        {"ToTheLargest",
         RaggedInts({{1}, {2, 3}, {}}),
         kAnyVector,
         {"[[1 -1] [2 3] [-1 -1]]"}},
        {"ToAShape",
         RaggedInts({{1}, {2, 3}}),
         kThree,
         {"[[1 -1 -1] [2 3 -1]]"}},
        {"UnknownRank",
         RaggedInts({{1}, {2, 3}}),
         PartialShape::UnknownRank(),
         {"[[1 -1] [2 3]]"}},
        {"Scalars",
         MakeColumn<int64_t>(std::vector<int64_t>{1, 2}),
         PartialShape(),
         {"[1 2]"}},
        {"Matrix",
         ZeroColumn(DType::kInt64, {1, 2}, 2),
         PartialShape(PartialShape::Dims{2, 3}),
         {"[[[0 0 -1] [-1 -1 -1]] [[0 0 -1] [-1 -1 -1]]]"}},
        {"TooLarge", RaggedInts({{1, 2, 3, 4}}), kThree, {}},
        {"AnotherRank", ZeroColumn(DType::kInt64, {1, 2}, 2), kThree, {}},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock
