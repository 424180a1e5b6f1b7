#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAreArray;

struct RangeCase {
  std::string name;
  plan::Plan plan;
  Rows want;
};

class RangeTest : public testing::TestWithParam<RangeCase> {};

TEST_P(RangeTest, CountsLikePython) {
  EXPECT_EQ(Drain(GetParam().plan), GetParam().want);
}

plan::Plan TypedRange(plan::DType dtype, int64_t start, int64_t stop) {
  Node node;
  node.mutable_range()->set_dtype(dtype);
  *node.mutable_range()->mutable_start() = Constant(start);
  *node.mutable_range()->mutable_stop() = Constant(stop);
  return AppendOrDie({}, std::move(node));
}

INSTANTIATE_TEST_SUITE_P(
    Ranges, RangeTest,
    testing::ValuesIn<RangeCase>({
        {"Plain", Range(4), {"0", "1", "2", "3"}},
        {"Empty", Range(0), {}},
        {"Negative", Range(5, 0, -2), {"5", "3", "1"}},
        {"WrongSign", Range(0, 5, -1), {}},
        {"LastStepIsPartial", Range(0, 7, 3), {"0", "3", "6"}},
        {"ToTheLargest", Range(INT64_MAX - 2, INT64_MAX),
         Numbers({INT64_MAX - 2, INT64_MAX - 1})},
        {"AcrossAllInts", Range(INT64_MIN, INT64_MAX, INT64_MAX),
         Numbers({INT64_MIN, -1, INT64_MAX - 1})},
        {"Floats", FloatRange(0, 1, 0.25), {"0", "0.25", "0.5", "0.75"}},
        {"FloatsDown", FloatRange(1, 0, -0.5), {"1", "0.5"}},
        {"FloatsWrongSign", FloatRange(1, 0, 0.5), {}},
        {"Uint8", TypedRange(plan::UINT8, 254, 257), {"254", "255", "0"}},
        {"Float16", TypedRange(plan::FLOAT16, 1, 3), {"1", "2"}},
    }),
    [](const auto& info) { return info.param.name; });

TEST(CounterTest, NeverEnds) {
  EXPECT_THAT(DrainFirst(Counter(3, -2), 4), ElementsAre("3", "1", "-1", "-3"));
  EXPECT_THAT(DrainFirst(Counter(), 40'000), SizeIs(40'000));
}

TEST(CounterTest, WrapsAround) {
  EXPECT_THAT(DrainFirst(Counter(INT64_MAX), 2),
              ElementsAreArray(Numbers({INT64_MAX, INT64_MIN})));
}

TEST(RangeContract, Holds) {
  CheckContract(Range(50));
  CheckContract(Range(0));
  CheckContract(FloatRange(0, 10, 0.3));
  CheckContract(Counter(7, 3));
}

}  // namespace
}  // namespace penstock::engine_testing
