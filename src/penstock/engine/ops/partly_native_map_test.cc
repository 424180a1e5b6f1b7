#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/python_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/fingerprint.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using testing::ElementsAre;
using testing::HasSubstr;

// x where the steps know it, which they do not where x % divisor == remainder:
// that is 2 * x then, and raised where x % 7 == 3.
Function Partly(int64_t divisor, int64_t remainder) {
  Function function = PythonDouble();
  const Function known = FailsWhere(divisor, remainder);
  *function.mutable_steps() = known.steps();
  *function.mutable_outputs() = known.outputs();
  return function;
}

TEST(PartlyNativeMapTest, PythonHasWhatTheStepsDoNotKnow) {
  EXPECT_THAT(Drain(Map(Range(7), Partly(3, 1))),
              ElementsAre("0", "2", "2", "3", "8", "5", "6"));
  EXPECT_THAT(Drain(Map(Range(4), Partly(1, 0))),
              ElementsAre("0", "2", "4", HasSubstr("!INVALID_ARGUMENT")));
  EXPECT_THAT(Drain(Map(Range(4), Partly(100, 99))),
              ElementsAre("0", "1", "2", "3"));
}

TEST(PartlyNativeMapTest, ErrorsArePythonsAndNameTheElement) {
  TestEngine engine;
  Reader reader(engine, Map(Range(2, 9), Partly(1, 0)));
  std::vector<std::string> messages;
  for (int64_t rows = 0; rows < 7;) {
    const absl::StatusOr<engine::Pull> pull = reader.Next(7);
    ASSERT_TRUE(pull.ok());
    rows += pull->chunk.rows;
    for (const RowError& error : pull->chunk.errors) {
      messages.emplace_back(error.status.message());
    }
  }
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_THAT(messages[0],
              HasSubstr("in double, for element 1 (from 0): raised"));
  EXPECT_THAT(messages[0], HasSubstr("at node \"map_1\""));
}

TEST(PartlyNativeMapTest, ErrorsOfItsInputStay) {
  EXPECT_THAT(Drain(Map(Map(Range(4), FailsWhere(4, 1)), Partly(2, 0))),
              ElementsAre("0", HasSubstr("!"), "4", "3"));
}

// A batch has rows written where they are read.
TEST(PartlyNativeMapTest, BatchesHaveRowsOfBoth) {
  EXPECT_THAT(Drain(Batch(Map(Range(6), Partly(3, 1)), 4)),
              ElementsAre("[0 2 2 3]", "[8 5]"));
  EXPECT_THAT(Drain(Batch(Map(Range(6), Partly(1, 0)), 3)),
              ElementsAre("[0 2 4]", HasSubstr("!"), "[8 10]"));
  EXPECT_EQ(Drain(Batch(Map(Range(6), Partly(1, 0)), 3)),
            Drain(Batch(Map(Range(6), PythonDouble()), 3)));
  EXPECT_THAT(Drain(Batch(Map(Range(6), Partly(100, 99)), 3)),
              ElementsAre("[0 1 2]", "[3 4 5]"));
}

TEST(PartlyNativeMapTest, IsTheSameFunctionAsWithoutSteps) {
  EXPECT_EQ(plan::Fingerprint(Map(Range(4), Partly(3, 1))),
            plan::Fingerprint(Map(Range(4), PythonDouble())));
}

TEST(PartlyNativeMapTest, StepsMustGiveWhatPythonGives) {
  Function function = PythonIsEven();
  const Function known = FailsWhere(3, 1);
  *function.mutable_steps() = known.steps();
  *function.mutable_outputs() = known.outputs();
  Node node;
  *node.mutable_map()->mutable_function() = function;
  const auto appended = TryAppend({Range(4)}, node);
  ASSERT_FALSE(appended.ok());
  EXPECT_THAT(std::string(appended.status().message()),
              HasSubstr("must give as Python what its steps give"));
}

TEST(PartlyNativeMapContract, Holds) {
  CheckContract(Map(Range(50), Partly(3, 1)));
  CheckContract(Map(Range(50), Partly(1, 0)));
  CheckContract(Map(Range(50), Partly(99, 98)));
  CheckContract(Map(Range(0), Partly(3, 1)));
  CheckContract(Batch(Map(Range(50), Partly(3, 1)), 4));
  CheckContract(Map(Map(Range(50), FailsWhere(5, 2)), Partly(4, 3), 3));
  CheckContract(Unordered(Map(Range(50), Partly(3, 1), 3)),
                {.is_ordered = false});
}

}  // namespace
}  // namespace penstock::engine_testing
