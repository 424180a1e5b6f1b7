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

TEST(EnumerateTest, PairsWithARunningNumber) {
  EXPECT_THAT(Drain(Enumerate(Strings({"a", "b"}), 5)),
              ElementsAre("(5, \"a\")", "(6, \"b\")"));
  EXPECT_THAT(Drain(Enumerate(Range(2), -1)), ElementsAre("(-1, 0)", "(0, 1)"));
  EXPECT_THAT(Drain(Enumerate(Range(0))), IsEmpty());
}

TEST(EnumerateTest, CountsErrors) {
  EXPECT_THAT(Drain(Enumerate(Map(Range(3), FailsWhere(3, 1)))),
              ElementsAre("(0, 0)", FailureText(), "(2, 2)"));
}

TEST(EnumerateTest, StartsAgainUnderRepeat) {
  EXPECT_THAT(Drain(Repeat(Enumerate(Range(1)), 2)),
              ElementsAre("(0, 0)", "(0, 0)"));
}

TEST(EnumerateContract, Holds) {
  CheckContract(Enumerate(Words(40), -3));
  CheckContract(Enumerate(Map(Range(20), FailsWhere(6, 1))));
}

}  // namespace
}  // namespace penstock::engine_testing
