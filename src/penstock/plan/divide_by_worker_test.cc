#include "penstock/plan/divide_by_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/plan/function_testing.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/plan/print.h"

namespace penstock::plan {
namespace {

using plan_testing::AddConstant;
using plan_testing::AppendOrDie;
using plan_testing::Batch;
using plan_testing::Filter;
using plan_testing::FlatMap;
using plan_testing::IsMultipleOf;
using plan_testing::ListFiles;
using plan_testing::Map;
using plan_testing::Range;
using plan_testing::Repeat;
using plan_testing::Take;
using testing::HasSubstr;

// name -> the lines of that file
Function ToLines() {
  Node node;
  *node.mutable_read_files()->mutable_files() = plan_testing::Bound(0);
  node.mutable_read_files()->mutable_text();
  plan_testing::FunctionBuilder f;
  return f.ReturnDataset(
      AppendOrDie({}, std::move(node), {plan_testing::LeafOf(plan::STRING)}),
      {f.Arg(0)});
}

Plan Hinted(const Plan& input) {
  Node node;
  node.mutable_shard()->set_is_by_worker(true);
  return AppendOrDie({input}, std::move(node));
}

absl::StatusOr<Division> Static(const Plan& plan,
                                Distribution::Sharding sharding) {
  return DivideFor(plan, Distribution::STATIC, sharding);
}

TEST(DivideByWorkerTest, EachWorkerRunsAllOfIt) {
  const Plan plan = Take(Batch(Repeat(Range(10)), 4), 3);
  const auto division = DivideFor(plan, Distribution::EACH_WORKER,
                                  Distribution::SHARDING_UNSPECIFIED);
  ASSERT_TRUE(division.ok()) << division.status();
  ASSERT_TRUE(division->by_worker.has_value());
  EXPECT_FALSE(division->by_worker->files.has_value());
  EXPECT_FALSE(division->by_worker->rows.has_value());
  EXPECT_EQ(division->remote.nodes_size(), plan.nodes_size());
  EXPECT_EQ(division->local.nodes_size(), 1);
  EXPECT_FALSE(division->stitch.has_value());
}

TEST(DivideByWorkerTest, DataIsParted) {
  // Below what makes one row of one.
  const auto mapped =
      Static(Map(Filter(Range(10), IsMultipleOf(2)), AddConstant(1)),
             Distribution::DATA);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_EQ(mapped->by_worker->rows, 1);
  const auto batched = Static(Batch(Range(10), 2), Distribution::DATA);
  ASSERT_TRUE(batched.ok()) << batched.status();
  EXPECT_EQ(batched->by_worker->rows, 1);
}

TEST(DivideByWorkerTest, FilesAreParted) {
  const Plan plan = Batch(FlatMap(ListFiles("*.txt"), ToLines()), 2);
  const auto files = Static(plan, Distribution::FILE);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->by_worker->files, 0);
  EXPECT_FALSE(files->by_worker->rows.has_value());
  const auto either = Static(plan, Distribution::FILE_OR_DATA);
  ASSERT_TRUE(either.ok()) << either.status();
  EXPECT_EQ(either->by_worker->files, 0);
  EXPECT_EQ(either->by_worker->rows, 2);
}

TEST(DivideByWorkerTest, WhereThereAreNoFiles) {
  const auto files = Static(Range(10), Distribution::FILE);
  EXPECT_TRUE(absl::IsNotFound(files.status())) << files.status();
  EXPECT_THAT(files.status().message(), HasSubstr("file_or_data"));
  const auto either = Static(Range(10), Distribution::FILE_OR_DATA);
  ASSERT_TRUE(either.ok()) << either.status();
  EXPECT_FALSE(either->by_worker->files.has_value());
  EXPECT_EQ(either->by_worker->rows, 0);
}

TEST(DivideByWorkerTest, AHintSaysWhere) {
  const Plan plan = Map(Hinted(Range(10)), AddConstant(1));
  const auto hinted = Static(plan, Distribution::HINT);
  ASSERT_TRUE(hinted.ok()) << hinted.status();
  EXPECT_EQ(hinted->by_worker->rows, 1);
  for (const Distribution::Visitation other :
       {Distribution::EXACTLY_ONCE, Distribution::EACH_WORKER}) {
    const auto refused =
        DivideFor(plan, other, Distribution::SHARDING_UNSPECIFIED);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()))
        << refused.status();
  }
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Static(plan, Distribution::DATA).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(Static(Range(10), Distribution::HINT).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Static(Hinted(Hinted(Range(10))), Distribution::HINT).status()));
}

}  // namespace
}  // namespace penstock::plan
