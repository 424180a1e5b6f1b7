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

TEST(IgnoreErrorsTest, DropsThem) {
  EXPECT_THAT(Drain(IgnoreErrors(Map(Range(5), FailsWhere(3, 1)))),
              ElementsAre("0", "2", "3"));
  EXPECT_THAT(Drain(IgnoreErrors(Map(Range(5), FailsWhere(1, 0)))), IsEmpty());
  EXPECT_THAT(Drain(IgnoreErrors(Map(Range(9'000), FailsWhere(1, 0))), {1}),
              IsEmpty());
  EXPECT_THAT(Drain(IgnoreErrors(Range(2))), ElementsAre("0", "1"));
}

TEST(IgnoreErrorsTest, LogsIfAsked) {
  for (bool log_warning : {false, true}) {
    plan::Plan plan = IgnoreErrors(Map(Range(5), FailsWhere(3, 1)));
    plan.mutable_nodes(plan.nodes_size() - 1)
        ->mutable_ignore_errors()
        ->set_log_warning(log_warning);
    TestEngine engine;
    Reader(engine, plan).Drain();
    EXPECT_THAT(engine.warnings(), SizeIs(log_warning ? 2 : 0));
  }
}

TEST(IgnoreErrorsContract, Holds) {
  CheckContract(IgnoreErrors(Map(Range(50), FailsWhere(3, 1))));
  CheckContract(IgnoreErrors(Map(Range(20), FailsWhere(1, 0))));
}

}  // namespace
}  // namespace penstock::engine_testing
