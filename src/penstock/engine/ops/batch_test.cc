#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests

using testing::ElementsAre;

struct BatchCase {
  std::string name;
  plan::Plan plan;
  Rows want;
};

class BatchTest : public testing::TestWithParam<BatchCase> {};

TEST_P(BatchTest, Groups) {
  EXPECT_EQ(Drain(GetParam().plan), GetParam().want);
  EXPECT_EQ(Drain(GetParam().plan, {1}), GetParam().want);
}

const std::string kMismatch = "!INVALID_ARGUMENT";  // NOLINT

INSTANTIATE_TEST_SUITE_P(
    Batches, BatchTest,
    testing::ValuesIn<BatchCase>({
        {"Even", Batch(Range(4), 2), {"[0 1]", "[2 3]"}},
        {"Remainder", Batch(Range(5), 2), {"[0 1]", "[2 3]", "[4]"}},
        {"DropRemainder", Batch(Range(5), 2, true), {"[0 1]", "[2 3]"}},
        {"DropAll", Batch(Range(5), 9, true), {}},
        {"Larger", Batch(Range(2), 9), {"[0 1]"}},
        {"OfNothing", Batch(Range(0), 2), {}},
        {"OfBatches", Batch(Batch(Range(4), 2), 2), {"[[0 1] [2 3]]"}},
        {"Strings",
         Batch(Strings({"a", "", "c"}), 2),
         {"[\"a\" \"\"]", "[\"c\"]"}},
        {"UnequalShapes",
         Batch(Map(Ints({1, 2, 1, 1}), UpTo()), 2),
         {kMismatch, "[[0] [0]]"}},
        {"EqualInEachBatch",
         Batch(Map(Ints({1, 1, 2, 2}), UpTo()), 2),
         {"[[0] [0]]", "[[0 1] [0 1]]"}},
        {"AroundAnError",
         Batch(Map(Range(5), FailsWhere(5, 1)), 2),
         {FailureText(), "[0 2]", "[3 4]"}},
        {"OnlyErrors",
         Batch(Map(Range(3), FailsWhere(1, 0)), 2),
         {FailureText(), FailureText(), FailureText()}},
        {"UnequalRanks",
         Batch(Concatenate(Range(3), Batch(Range(4), 2)), 2),
         {"[0 1]", kMismatch, "[[2 3]]"}},
    }),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Padded, BatchTest,
    testing::ValuesIn<BatchCase>({
        {"ToTheLargest",
         PaddedBatch(Map(Ints({1, 3, 0, 2}), UpTo()), 2),
         {"[[0 0 0] [0 1 2]]", "[[0 0] [0 1]]"}},
        {"ToAShape",
         PaddedBatch(Map(Ints({1, 0}), UpTo()), 2, {{3}}, false,
                     {Scalar(int64_t{-1})}),
         {"[[0 -1 -1] [-1 -1 -1]]"}},
        {"TooLarge",
         PaddedBatch(Map(Ints({5, 1, 2, 2}), UpTo()), 2, {{3}}),
         {kMismatch, "[[0 1 0] [0 1 0]]"}},
        {"TwoDimensions",
         PaddedBatch(Concatenate(Batch(Batch(Range(4), 2), 2),
                                 Batch(Batch(Range(3), 3), 1)),
                     2, {}, false, {Scalar(int64_t{9})}),
         {"[[[0 1 9] [2 3 9]] [[0 1 2] [9 9 9]]]"}},
        {"Words",
         PaddedBatch(Concatenate(Batch(Strings({"a", "b"}), 2),
                                 Batch(Strings({"c"}), 1)),
                     2, {}, false, {Text("-")}),
         {"[[\"a\" \"b\"] [\"c\" \"-\"]]"}},
        {"PaddedRemainder",
         PaddedBatch(Map(Ints({1, 2, 1}), UpTo()), 2),
         {"[[0 0] [0 1]]", "[[0]]"}},
        {"PaddedDropRemainder",
         PaddedBatch(Map(Ints({1, 2, 1}), UpTo()), 2, {}, true),
         {"[[0 0] [0 1]]"}},
        {"ZeroSizes", PaddedBatch(Map(Ints({0, 0}), UpTo()), 2), {"[[] []]"}},
    }),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Rebatched, BatchTest,
    testing::ValuesIn<BatchCase>({
        {"Smaller",
         Rebatch(Batch(Range(5), 3), {2}),
         {"[0 1]", "[2 3]", "[4]"}},
        {"InTurn",
         Rebatch(Batch(Range(8), 4), {1, 2}),
         {"[0]", "[1 2]", "[3]", "[4 5]", "[6]", "[7]"}},
        {"Zeros",
         Rebatch(Batch(Range(4), 4), {2, 0}),
         {"[0 1]", "[]", "[2 3]"}},
        {"RebatchedDropRemainder",
         Rebatch(Batch(Range(5), 3), {2}, true),
         {"[0 1]", "[2 3]"}},
        {"AcrossAnError",
         Rebatch(Map(Batch(Range(6), 2), Identity()), {4}),
         {"[0 1 2 3]", "[4 5]"}},
        {"OfNoBatches", Rebatch(Batch(Range(0), 2), {3}), {}},
    }),
    [](const auto& info) { return info.param.name; });

TEST(BatchTest, LargeBatches) {
  EXPECT_THAT(Drain(Map(Batch(Range(100'000), 70'000),
                        [] {
                          FunctionBuilder f;
                          return f.Return(f.Call("size", {f.Arg(0)}));
                        }())),
              ElementsAre("70000", "30000"));
}

TEST(RaggedBatchTest, UnknownDimensionsAreRagged) {
  const Plan vectors = Map(Range(4), UpTo());
  EXPECT_THAT(Drain(RaggedBatch(vectors, 3)),
              ElementsAre("([0 0 1], [0 0 1 3])", "([0 1 2], [0 3])"));
  EXPECT_THAT(Drain(RaggedBatch(vectors, 3, true)),
              ElementsAre("([0 0 1], [0 0 1 3])"));
  EXPECT_THAT(Drain(RaggedBatch(Range(3), 2)), ElementsAre("[0 1]", "[2]"));
  // Batches of batches have a level more, and come apart again.
  const Plan twice = Batch(RaggedBatch(vectors, 2), 2);
  EXPECT_THAT(Drain(twice),
              ElementsAre("([0 0 1 0 1 2], [0 0 1 3 6], [0 2 4])"));
  EXPECT_EQ(Drain(Unbatch(twice)), Drain(RaggedBatch(vectors, 2)));
  EXPECT_EQ(Drain(Unbatch(Unbatch(twice))), Drain(vectors));
  EXPECT_THAT(Drain(Rebatch(RaggedBatch(vectors, 3), {2})), testing::SizeIs(2));
}

TEST(SparseBatchTest, EveryItemHasItsPlace) {
  const Plan vectors = Map(Range(4), UpTo());
  EXPECT_THAT(Drain(SparseBatch(vectors, 3, {std::nullopt})),
              ElementsAre("([[1 0] [2 0] [2 1]], [0 0 1], [3 2])",
                          "([[0 0] [0 1] [0 2]], [0 1 2], [1 3])"));
  EXPECT_THAT(Drain(SparseBatch(vectors, 2, {2})),
              ElementsAre("([[1 0]], [0], [2 2])", "!DATA_LOSS"));
  const Plan batched = Batch(SparseBatch(vectors, 2, {5}), 2);
  EXPECT_THAT(Drain(batched), testing::SizeIs(1));
  EXPECT_EQ(Drain(Unbatch(batched)), Drain(SparseBatch(vectors, 2, {5})));
}

TEST(CompositeBatchContract, Holds) {
  const Plan vectors = Map(Map(Range(50), Mod(7)), UpTo());
  CheckContract(RaggedBatch(vectors, 3));
  CheckContract(Batch(RaggedBatch(vectors, 2), 3));
  CheckContract(Unbatch(RaggedBatch(vectors, 5)));
  CheckContract(Rebatch(RaggedBatch(vectors, 5), {2, 3}));
  CheckContract(SparseBatch(vectors, 3, {4}));  // with errors
  CheckContract(Unbatch(SparseBatch(vectors, 4, {std::nullopt})));
  CheckContract(Window(RaggedBatch(vectors, 2), 2));
}

TEST(BatchContract, Holds) {
  CheckContract(Batch(Range(100), 3));
  CheckContract(Batch(Range(100), 3, true));
  CheckContract(Batch(Map(Range(40), FailsWhere(7, 3)), 3));
  CheckContract(Batch(Map(Range(40), FailsWhere(3, 1)), 4));
  CheckContract(Batch(Map(Range(40), FailsWhere(2, 1)), 5, true));
  CheckContract(Batch(Words(40), 3));
  CheckContract(Batch(Map(Range(14), UpTo()), 1));
  CheckContract(Batch(Map(Map(Range(40), Mod(3)), UpTo()), 2));
  CheckContract(Batch(Batch(Range(100), 3), 4));
}

TEST(BatchContract, HoldsPadded) {
  CheckContract(PaddedBatch(Map(Range(14), UpTo()), 3));
  CheckContract(PaddedBatch(Map(Map(Range(20), FailsWhere(5, 2)), UpTo()), 3));
  CheckContract(PaddedBatch(Map(Range(20), UpTo()), 3, {{8}}));
}

TEST(BatchContract, HoldsRebatched) {
  CheckContract(Rebatch(Batch(Range(60), 7), {3}));
  CheckContract(Rebatch(Batch(Range(60), 7), {3, 0, 5, 1}));
  CheckContract(Rebatch(Batch(Range(60), 7), {4, 2}, true));
  CheckContract(Rebatch(Batch(Map(Range(30), FailsWhere(8, 1)), 7), {3, 1}));
}

}  // namespace
}  // namespace penstock::engine_testing
