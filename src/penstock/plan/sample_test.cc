#include "penstock/plan/sample.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/plan/print.h"
#include "penstock/plan/validate.h"

namespace penstock::plan_testing {
namespace {

using plan::LeaveOutCache;
using plan::NodeName;
using plan::Validate;
using testing::HasSubstr;

Plan Cached(Plan input) {
  Node node;
  node.mutable_cache()->set_filename("rows");
  return AppendOrDie({std::move(input)}, std::move(node));
}

TEST(LeaveOutCache, TakesOneCacheAlone) {
  Plan plan = Repeat(Cached(Cached(Range(5))), 2);
  ASSERT_EQ(NodeName(plan, 2), "cache_2");
  ASSERT_TRUE(LeaveOutCache("cache_2", plan).ok());
  EXPECT_TRUE(Validate(plan).ok());
  EXPECT_EQ(plan.nodes(3).inputs(0), 1u);
  EXPECT_TRUE(plan.nodes(1).has_cache());
}

TEST(LeaveOutCache, MayBeTheRoot) {
  Plan plan = Cached(Range(5));
  ASSERT_TRUE(LeaveOutCache("cache_1", plan).ok());
  EXPECT_TRUE(Validate(plan).ok());
  EXPECT_EQ(plan.nodes_size(), 1);
}

TEST(LeaveOutCache, SaysThatThereIsNone) {
  Plan plan = Range(5);
  const absl::Status status = LeaveOutCache("range_0", plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("range_0"));
}

}  // namespace
}  // namespace penstock::plan_testing
