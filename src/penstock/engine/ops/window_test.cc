#include "penstock/engine/ops/window.h"

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
using testing::ElementsAreArray;

// Each window as one batch.
Plan Batches(Plan windows) {
  return FlatMap(std::move(windows), ToBatches(99));
}

struct WindowCase {
  std::string name;
  plan::Plan plan;
  Rows want;
};

class WindowTest : public testing::TestWithParam<WindowCase> {};

TEST_P(WindowTest, Gives) {
  EXPECT_EQ(Drain(Batches(GetParam().plan)), GetParam().want);
  EXPECT_EQ(Drain(Batches(GetParam().plan), {1}), GetParam().want);
}

TEST_P(WindowTest, KnowsItsCardinality) {
  const plan::Plan& plan = GetParam().plan;
  const plan::Cardinality& known =
      plan.nodes(plan.nodes_size() - 1).cardinality();
  ASSERT_TRUE(known.has_finite());
  EXPECT_EQ(known.finite(), Drain(plan).size());
}

INSTANTIATE_TEST_SUITE_P(
    Plans, WindowTest,
    testing::ValuesIn<WindowCase>({
        {"Even", Window(Range(4), 2), {"[0 1]", "[2 3]"}},
        {"Partial", Window(Range(5), 2), {"[0 1]", "[2 3]", "[4]"}},
        {"Dropped", Window(Range(5), 2, 0, 1, true), {"[0 1]", "[2 3]"}},
        {"Sliding",
         Window(Range(5), 3, 1, 1, true),
         {"[0 1 2]", "[1 2 3]", "[2 3 4]"}},
        {"SlidingPartial",
         Window(Range(4), 3, 1),
         {"[0 1 2]", "[1 2 3]", "[2 3]", "[3]"}},
        {"Stride",
         Window(Range(7), 3, 1, 2, true),
         {"[0 2 4]", "[1 3 5]", "[2 4 6]"}},
        {"StridePartial", Window(Range(5), 2, 2, 3), {"[0 3]", "[2]", "[4]"}},
        {"ShiftOver", Window(Range(10), 2, 4), {"[0 1]", "[4 5]", "[8 9]"}},
        {"ShiftFarOver", Window(Range(10), 1, 100), {"[0]"}},
        {"LargerThanInput", Window(Range(3), 10), {"[0 1 2]"}},
        {"LargerDropped", Window(Range(3), 10, 0, 1, true), {}},
        {"Empty", Window(Range(0), 2), {}},
    }),
    [](const auto& info) { return info.param.name; });

TEST(WindowErrors, AWindowWithAnErrorIsOne) {
  const Plan plan = Batches(Window(Map(Range(6), FailsWhere(6, 2)), 2));
  EXPECT_THAT(Drain(plan), ElementsAre("[0 1]", FailureText(), "[4 5]"));
  EXPECT_THAT(Drain(Batches(IgnoreErrors(
                  Window(Map(Range(6), FailsWhere(6, 2)), 3, 1, 1, true)))),
              ElementsAre("[3 4 5]"));
}

TEST(WindowTest2, OfManyRows) {
  EXPECT_THAT(Drain(FlatMap(Window(Range(40'000), 7), ToRows())),
              ElementsAreArray(Numbers(0, 40'000)));
  EXPECT_THAT(DrainFirst(Batches(Window(Counter(), 2)), 2),
              ElementsAre("[0 1]", "[2 3]"));
}

TEST(WindowContract, Holds) {
  CheckContract(Window(Range(50), 3));
  CheckContract(Batches(Window(Range(50), 3, 2, 4)));
  CheckContract(Batches(Window(Range(50), 2, 7)));
  CheckContract(Batches(Window(Map(Range(40), FailsWhere(7, 2)), 3, 1)));
  CheckContract(Window(Counter(), 4, 3));
}

}  // namespace
}  // namespace penstock::engine_testing
