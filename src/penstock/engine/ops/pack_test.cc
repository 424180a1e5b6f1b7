#include "penstock/engine/ops/pack.h"

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

// Rows are (positions, segment ids, values).
TEST(PackTest, FirstFit) {
  // 1 and 2 fill the row of 3, which has room first; the last goes to that
  // of 4.
  EXPECT_THAT(Drain(Pack(Map(Ints({3, 4, 1, 2, 1}), UpTo()), 6, 2)),
              ElementsAre("([0 1 2 0 0 1], [1 1 1 2 3 3], [0 1 2 0 0 1])",
                          "([0 1 2 3 0 0], [1 1 1 1 2 0], [0 1 2 3 0 0])"));
}

TEST(PackTest, TheOldestRowMakesRoom) {
  EXPECT_THAT(
      Drain(Pack(Map(Ints({2, 2, 2}), UpTo()), 3, 2)),
      ElementsAre("([0 1 0], [1 1 0], [0 1 0])", "([0 1 0], [1 1 0], [0 1 0])",
                  "([0 1 0], [1 1 0], [0 1 0])"));
  EXPECT_THAT(
      Drain(Pack(Map(Ints({2, 3, 1}), UpTo()), 3, 1)),
      ElementsAre("([0 1 0], [1 1 0], [0 1 0])", "([0 1 2], [1 1 1], [0 1 2])",
                  "([0 0 0], [1 0 0], [0 0 0])"));
}

TEST(PackTest, Split) {
  EXPECT_THAT(
      Drain(Pack(Map(Ints({2, 5, 0, 1}), UpTo()), 3, 0, true)),
      ElementsAre("([0 1 0], [1 1 2], [0 1 0])", "([0 1 2], [1 1 1], [1 2 3])",
                  "([0 0 0], [1 2 0], [4 0 0])"));
  EXPECT_THAT(Drain(Pack(Map(Ints({2, 5}), UpTo()), 3, 0, true, true)),
              ElementsAre("([0 1 0], [1 1 2], [0 1 0])",
                          "([0 1 2], [1 1 1], [1 2 3])"));
}

TEST(PackTest, TooLongIsAnErrorInItsPlace) {
  EXPECT_THAT(Drain(Pack(Map(Ints({3, 4, 3}), UpTo()), 3)),
              ElementsAre("([0 1 2], [1 1 1], [0 1 2])", "!INVALID_ARGUMENT",
                          "([0 1 2], [1 1 1], [0 1 2])"));
}

TEST(PackContract, Holds) {
  const Plan sequences = Map(Map(Range(80), Mod(9)), UpTo());
  const Plan failing =
      Map(Map(Map(Range(60), Mod(9)), FailsWhere(9, 4)), UpTo());
  CheckContract(Pack(sequences, 10, 3));
  CheckContract(Pack(failing, 10, 2));
  CheckContract(Pack(sequences, 7, 2));  // 8 is too long
  CheckContract(Pack(sequences, 5, 0, true));
  CheckContract(Pack(failing, 4, 0, true, true));
}

}  // namespace
}  // namespace penstock::engine_testing
