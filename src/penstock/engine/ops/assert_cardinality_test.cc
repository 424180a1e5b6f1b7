#include "penstock/engine/ops/assert_cardinality.h"

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
using testing::IsEmpty;

TEST(AssertCardinalityTest, HoldsOrFailsAtItsEnd) {
  EXPECT_THAT(Drain(AssertCardinality(Range(3), 3)),
              ElementsAreArray(Numbers(0, 3)));
  EXPECT_THAT(Drain(AssertCardinality(Range(0), 0)), IsEmpty());
  EXPECT_THAT(Drain(AssertCardinality(Filter(Range(4), IsLessThan(2)), 3)),
              ElementsAre("0", "1", "!FAILED_PRECONDITION"));
  EXPECT_THAT(Drain(AssertCardinality(Range(4), 3)),
              ElementsAre("0", "1", "2", "!FAILED_PRECONDITION"));
  EXPECT_THAT(Drain(AssertCardinality(Counter(), 1)),
              ElementsAre("0", "!FAILED_PRECONDITION"));
}

TEST(AssertCardinalityContract, Holds) {
  CheckContract(AssertCardinality(Range(20), 20));
  CheckContract(AssertCardinality(Range(20), 10));
  CheckContract(AssertCardinality(Map(Range(20), FailsWhere(7, 2)), 25));
}

}  // namespace
}  // namespace penstock::engine_testing
