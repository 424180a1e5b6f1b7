#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

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

struct RepeatCase {
  std::string name;
  plan::Plan plan;
  Rows want;
};

class RepeatTest : public testing::TestWithParam<RepeatCase> {};

TEST_P(RepeatTest, GivesPasses) {
  EXPECT_EQ(Drain(GetParam().plan), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Counts, RepeatTest,
    testing::ValuesIn<RepeatCase>({
        {"Twice", Repeat(Range(2), 2), {"0", "1", "0", "1"}},
        {"Once", Repeat(Range(2), 1), {"0", "1"}},
        {"Never", Repeat(Range(2), 0), {}},
        {"EmptyForEver", Repeat(Range(0)), {}},
        {"EmptyOften", Repeat(Range(0), 100'000), {}},
        {"FilteredToNothingForEver",
         Repeat(Filter(Range(9), IsLessThan(0))),
         {}},
        {"Nested",
         Repeat(Repeat(Range(2), 2), 2),
         {"0", "1", "0", "1", "0", "1", "0", "1"}},
        {"OfErrors",
         Repeat(Map(Range(2), FailsWhere(2, 0)), 2),
         {FailureText(), "1", FailureText(), "1"}},
    }),
    [](const auto& info) { return info.param.name; });

TEST(RepeatTest, ForEver) {
  EXPECT_THAT(DrainFirst(Repeat(Range(2)), 5),
              ElementsAre("0", "1", "0", "1", "0"));
}

// Each pass is another one to what is random in it, nested or not.
TEST(RepeatTest, PassesAreToldApart) {
  const Rows rows =
      Drain(Repeat(Repeat(Repeat(Map(Range(2), RandomNumber()), 3), 3), 2));
  EXPECT_THAT(std::set<std::string>(rows.begin(), rows.end()), SizeIs(36));
}

TEST(RepeatContract, Holds) {
  CheckContract(Repeat(Range(7), 3));
  CheckContract(Repeat(Range(7)));
  CheckContract(Repeat(Repeat(Range(3), 2), 3));
  CheckContract(Repeat(Range(0)));
  CheckContract(Repeat(Range(5), 0));
  CheckContract(Repeat(Prefetch(Map(Range(6), FailsWhere(4, 1))), 3));
}

}  // namespace
}  // namespace penstock::engine_testing
