#include "penstock/engine/ops/grouping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/reader_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(GroupByWindowTest, FullGroupsThenTheRestByKey) {
  // Key 2 comes first, and is flushed last.
  EXPECT_THAT(Drain(GroupByWindow(Ints({2, 1, 0, 4, 3, 5, 7}), Mod(3), 3)),
              ElementsAre("[1 4 7]", "[0 3]", "[2 5]"));
}

TEST(GroupByWindowTest, AtOnceOnInfiniteInput) {
  EXPECT_THAT(DrainFirst(GroupByWindow(Counter(), Mod(2), 2), 3),
              ElementsAre("[0 2]", "[1 3]", "[4 6]"));
}

TEST(GroupByWindowTest, ErrorsAreGivenWhereTheyCome) {
  EXPECT_THAT(Drain(GroupByWindow(Map(Range(6), FailsWhere(6, 2)), Mod(2), 2)),
              ElementsAre(FailureText(), "[1 3]", "[0 4]", "[5]"));
  EXPECT_THAT(Drain(GroupByWindow(Range(4), FailsWhere(4, 1), 1)),
              ElementsAre("[0]", FailureText(), "[2]", "[3]"));
}

TEST(GroupByWindowTest, SizeByKey) {
  Node node;
  plan::GroupByWindow* op = node.mutable_group_by_window();
  *op->mutable_key() = Mod(3);
  *op->mutable_reduce() = ToBatches(9, 1);
  *op->mutable_window_size_function() = Identity();  // none of key 0
  const Rows rows = Drain(AppendOrDie({Range(7)}, node));
  EXPECT_THAT(rows, ElementsAre(HasSubstr("!"), "[1]", HasSubstr("!"), "[4]",
                                "[2 5]", HasSubstr("!")));
}

Plan Buckets(Plan input, const std::vector<int64_t>& boundaries,
             const std::vector<int64_t>& sizes, bool to_boundary = false,
             bool drop_remainder = false) {
  Node node;
  plan::BucketBySequenceLength* op = node.mutable_bucket_by_sequence_length();
  FunctionBuilder f("length");
  *op->mutable_length() = f.Return(f.Call("size", {f.Arg(0)}));
  *op->mutable_boundaries() = {boundaries.begin(), boundaries.end()};
  *op->mutable_batch_sizes() = {sizes.begin(), sizes.end()};
  op->set_pad_to_boundary(to_boundary);
  op->set_drop_remainder(drop_remainder);
  return AppendOrDie({std::move(input)}, std::move(node));
}

TEST(BucketTest, BoundariesAreExclusive) {
  // Lengths 0 to 5: below 2, below 4, others.
  EXPECT_THAT(Drain(Buckets(Map(Range(6), UpTo()), {2, 4}, {2, 2, 2})),
              ElementsAre("[[0] [0]]", "[[0 1 0] [0 1 2]]",
                          "[[0 1 2 3 0] [0 1 2 3 4]]"));
}

TEST(BucketTest, PadsToTheBoundaryLessOne) {
  EXPECT_THAT(Drain(Buckets(Map(Range(1, 4), UpTo()), {3, 6}, {1, 2, 1}, true)),
              ElementsAre("[[0 0]]", "[[0 1]]", "[[0 1 2 0 0]]"));
  // One that is too long is an error in its batch's place, not before.
  EXPECT_THAT(Drain(Buckets(Map(Range(1, 4), UpTo()), {3}, {1, 1}, true)),
              ElementsAre("[[0 0]]", "[[0 1]]", HasSubstr("!")));
}

TEST(BucketTest, Remainders) {
  EXPECT_THAT(Drain(Buckets(Map(Ints({5, 1, 1, 1}), UpTo()), {2}, {2, 2}, false,
                            /*drop_remainder=*/true)),
              ElementsAre("[[0] [0]]"));
  EXPECT_THAT(Drain(Buckets(Map(Ints({3, 1}), UpTo()), {2}, {2, 2})),
              ElementsAre("[[0]]", "[[0 1 2]]"));
  EXPECT_THAT(Drain(Buckets(Map(Range(0), UpTo()), {2}, {2, 2})), IsEmpty());
}

Plan TokenBuckets(Plan input, const std::vector<int64_t>& boundaries,
                  int64_t max_tokens,
                  plan::TooLong too_long = plan::TOO_LONG_IS_ERROR) {
  Node node;
  plan::BucketBySequenceLength* op = node.mutable_bucket_by_sequence_length();
  FunctionBuilder f("length");
  *op->mutable_length() = f.Return(f.Call("size", {f.Arg(0)}));
  *op->mutable_boundaries() = {boundaries.begin(), boundaries.end()};
  op->set_max_tokens(max_tokens);
  op->set_too_long(too_long);
  return AppendOrDie({std::move(input)}, std::move(node));
}

TEST(TokenBucketTest, SizesFollowFromTheBudget) {
  // Below 2: up to 4 rows. Others: as many as fit.
  EXPECT_THAT(
      Drain(TokenBuckets(Map(Ints({1, 2, 1, 2, 3, 1, 1}), UpTo()), {2}, 4)),
      ElementsAre("[[0 1] [0 1]]", "[[0 1 2]]", "[[0] [0] [0] [0]]"));
}

TEST(TokenBucketTest, TheLastBucketGoesOnWhenItIsFull) {
  EXPECT_THAT(Drain(TokenBuckets(Map(Ints({2, 2, 5, 2}), UpTo()), {}, 6)),
              ElementsAre("[[0 1] [0 1]]", "[[0 1 2 3 4]]", "[[0 1]]"));
}

TEST(TokenBucketTest, TooLong) {
  const Plan rows = Map(Ints({1, 5, 1}), UpTo());
  EXPECT_THAT(Drain(TokenBuckets(rows, {2}, 4)),
              ElementsAre(HasSubstr("!"), "[[0] [0]]"));
  EXPECT_THAT(Drain(TokenBuckets(rows, {2}, 4, plan::TOO_LONG_IS_DROPPED)),
              ElementsAre("[[0] [0]]"));
  EXPECT_THAT(Drain(TokenBuckets(rows, {2}, 4, plan::TOO_LONG_IS_ALONE)),
              ElementsAre("[[0 1 2 3 4]]", "[[0] [0]]"));
}

TEST(TokenBucketContract, Holds) {
  const Plan mixed = Map(Map(Range(40), Mod(7)), UpTo());
  CheckContract(TokenBuckets(mixed, {3}, 12));
  CheckContract(TokenBuckets(mixed, {3}, 5));
  CheckContract(TokenBuckets(mixed, {}, 5, plan::TOO_LONG_IS_DROPPED));
}

TEST(GroupingContract, Holds) {
  CheckContract(GroupByWindow(Range(50), Mod(5), 3));
  CheckContract(GroupByWindow(Map(Range(40), FailsWhere(7, 2)), Mod(3), 4));
  CheckContract(GroupByWindow(Counter(), Mod(7), 3));
  CheckContract(
      Buckets(Map(Map(Range(60), Mod(9)), UpTo()), {3, 6}, {2, 3, 4}));
  CheckContract(Buckets(Map(Map(Range(60), Mod(9)), UpTo()), {3, 6}, {2, 3, 4},
                        false, true));
}

// A group that never fills pins its place, and others go on far beyond it.
TEST(GroupingState, OfAnOldGroup) {
  std::vector<int64_t> values(5000, 1);
  values[3] = 0;
  const Plan plan = GroupByWindow(Ints(values), Identity(), 100);
  TestEngine engine;
  Reader reader(engine, plan);
  const Rows first = reader.Read(30, 1);
  const std::string state = reader.Save();
  EXPECT_LT(state.size(), 200);
  const Rows rest = reader.Drain();
  Reader resumed = Reader::Resume(engine, reader.pipeline(), state);
  EXPECT_EQ(resumed.Drain(), rest);
  EXPECT_EQ(first.size() + rest.size(), 51);
}

}  // namespace
}  // namespace penstock::engine_testing
