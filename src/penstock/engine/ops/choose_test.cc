#include "penstock/engine/ops/choose.h"

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

TEST(ChooseTest, InTheOrderOfChoices) {
  EXPECT_THAT(
      Drain(ChooseFrom(Ints({1, 0, 0, 1, 1}), {Range(2), Range(10, 20)})),
      ElementsAre("10", "0", "1", "11", "12"));
  EXPECT_THAT(Drain(ChooseFrom(Range(0), {Range(2)})), IsEmpty());
}

TEST(ChooseTest, StopsOrSkipsOnEmpty) {
  const std::vector<Plan> inputs = {Range(1), Range(10, 13)};
  EXPECT_THAT(Drain(ChooseFrom(Ints({0, 1, 0, 1, 1, 1, 1}), inputs)),
              ElementsAre("0", "10", "11", "12"));
  EXPECT_THAT(Drain(ChooseFrom(Ints({0, 1, 0, 1, 1}), inputs, true)),
              ElementsAre("0", "10"));
  // All are empty: the choices need not end.
  EXPECT_THAT(Drain(ChooseFrom(Map(Counter(), Mod(2)), inputs)),
              ElementsAre("0", "10", "11", "12"));
}

TEST(ChooseTest, ErrorsAreInTheirPlaces) {
  EXPECT_THAT(
      Drain(ChooseFrom(Ints({0, 7, 0, -1, 0}), {Range(9)})),
      ElementsAre("0", "!INVALID_ARGUMENT", "1", "!INVALID_ARGUMENT", "2"));
  EXPECT_THAT(Drain(ChooseFrom(Map(Ints({0, 1, 0}), FailsWhere(2, 1)),
                               {Range(9), Range(9)})),
              ElementsAre("0", FailureText(), "1"));
}

TEST(SampleTest, GivesAllOfAll) {
  EXPECT_THAT(Drain(SampleFrom({Range(20), Range(20, 50)}, {}, 1)),
              testing::UnorderedElementsAreArray(Numbers(0, 50)));
  // Order within each stays.
  EXPECT_THAT(Drain(SampleFrom({Range(5)}, {}, 1)),
              ElementsAreArray(Numbers(0, 5)));
}

TEST(SampleTest, WeightsDecide) {
  const Rows rows = DrainFirst(
      SampleFrom({Repeat(Ints({0})), Repeat(Ints({1})), Repeat(Ints({2}))},
                 {0.2, 0.5, 0.3}, 7),
      20'000);
  std::vector<double> counts(3);
  for (const std::string& row : rows) counts[row[0] - '0'] += 1;
  const std::vector<double> want = {4000, 10'000, 6000};
  double chi_square = 0;
  for (int i = 0; i < 3; ++i) {
    chi_square += (counts[i] - want[i]) * (counts[i] - want[i]) / want[i];
  }
  EXPECT_LT(chi_square, 13.8);  // p = 0.001, two degrees of freedom
}

TEST(SampleTest, ZeroWeightsAreNeverDrawn) {
  EXPECT_THAT(Drain(SampleFrom({Range(3), Range(10, 13)}, {0, 0.5}, 3)),
              ElementsAreArray(Numbers(10, 13)));
  EXPECT_THAT(Drain(SampleFrom({Range(3), Range(9)}, {0, 0}, 3)), IsEmpty());
}

TEST(SampleTest, StopsOnEmpty) {
  const Rows rows = Drain(SampleFrom({Range(3), Counter(100)}, {}, 3, true));
  EXPECT_THAT(rows, testing::IsSupersetOf({"0", "1", "2"}));
}

TEST(ChooseContract, Holds) {
  CheckContract(ChooseFrom(
      Map(Range(60), Mod(3)),
      {Range(9), Map(Range(30), FailsWhere(5, 1)), Range(100, 130)}));
  CheckContract(ChooseFrom(Ints({0, 1, 5, 0, 1, 1}), {Range(9), Range(2)}));
  CheckContract(ChooseFrom(Map(Counter(), Mod(2)), {Range(9), Range(7)}, true));
  CheckContract(SampleFrom({Range(20), Range(50, 75)}, {0.3, 0.7}, 3));
  CheckContract(SampleFrom({Range(20), Counter()}, {}, 3));
  CheckContract(SampleFrom({Range(20), Range(9)}, {}, 3, true));
}

}  // namespace
}  // namespace penstock::engine_testing
