#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ScanTest, PassesItsStateOn) {
  EXPECT_THAT(Drain(Scan(Range(1, 5), 10, RunningSum())),
              ElementsAre("11", "13", "16", "20"));
  EXPECT_THAT(Drain(Scan(Range(0), 10, RunningSum())), IsEmpty());
  EXPECT_THAT(Drain(Repeat(Scan(Range(1, 3), 0, RunningSum()), 2)),
              ElementsAre("1", "3", "1", "3"));
}

TEST(ScanTest, AnErrorLeavesTheState) {
  EXPECT_THAT(Drain(Scan(Map(Range(4), FailsWhere(4, 2)), 0, RunningSum())),
              ElementsAre("0", "1", FailureText(), "4"));
}

TEST(ReduceTest, GivesTheLastState) {
  EXPECT_THAT(Drain(Reduce(Range(1, 5), 10, Sum())), ElementsAre("20"));
  EXPECT_THAT(Drain(Reduce(Range(0), 10, Sum())), ElementsAre("10"));
  EXPECT_THAT(Drain(Reduce(Range(100'000), 0, Sum())),
              ElementsAre("4999950000"));
}

TEST(ReduceTest, AnErrorIsTheResult) {
  EXPECT_THAT(Drain(Reduce(Map(Range(4), FailsWhere(4, 2)), 0, Sum())),
              ElementsAre(FailureText()));
}

// A state whose shape grows from step to step: (s, x) -> concat(s, [x]).
plan::Rows EmptyVector() {
  Chunk chunk;
  chunk.rows = 1;
  chunk.columns = {ZeroColumn(DType::kInt64, {0}, 1)};
  return RowsOf(chunk, TensorOf(plan::INT64, {0}));
}

FunctionBuilder::Step Appended(FunctionBuilder& f) {
  const auto state = f.Arg(0);
  plan::Attr axis;
  axis.set_integer(0);
  const auto item = f.Call("expand_dims", {f.Arg(1)}, {{"axis", axis}});
  return f.Call("concat", {state, item}, {{"axis", axis}});
}

TEST(ScanTest, StateMayRelax) {
  FunctionBuilder f;
  const auto all = Appended(f);
  Node node;
  *node.mutable_scan()->mutable_initial_state() = EmptyVector();
  *node.mutable_scan()->mutable_function() = f.ReturnTuple({all, all});
  const plan::Plan plan = AppendOrDie({Range(5, 9)}, node);
  const Rows want = {"[5]", "[5 6]", "[5 6 7]", "[5 6 7 8]"};
  EXPECT_EQ(Drain(plan), want);
  EXPECT_EQ(Drain(Shuffle(plan, 1)), want);
  CheckContract(plan);
}

TEST(ReduceTest, StateMayRelax) {
  FunctionBuilder f;
  Node node;
  *node.mutable_reduce()->mutable_initial_state() = EmptyVector();
  *node.mutable_reduce()->mutable_function() = f.Return(Appended(f));
  const plan::Plan plan = AppendOrDie({Range(5, 9)}, node);
  EXPECT_THAT(Drain(plan), ElementsAre("[5 6 7 8]"));
  CheckContract(plan);
}

TEST(ScanContract, Holds) {
  CheckContract(Scan(Range(50), 3, RunningSum()));
  CheckContract(Scan(Map(Range(50), FailsWhere(7, 2)), 3, RunningSum()));
  CheckContract(Reduce(Range(5000), 3, Sum()));
  CheckContract(Reduce(Range(0), 3, Sum()));
}

}  // namespace
}  // namespace penstock::engine_testing
