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

TEST(ConcatenateTest, GivesOneAfterAnother) {
  EXPECT_THAT(Drain(Concatenate(Range(2), Range(5, 7))),
              ElementsAre("0", "1", "5", "6"));
  EXPECT_THAT(Drain(Concatenate(Range(0), Range(2))), ElementsAre("0", "1"));
  EXPECT_THAT(Drain(Concatenate(Range(2), Range(0))), ElementsAre("0", "1"));
}

TEST(ConcatenateTest, RelaxesShapes) {
  EXPECT_THAT(Drain(Concatenate(Batch(Range(4), 2), Batch(Range(3), 3))),
              ElementsAre("[0 1]", "[2 3]", "[0 1 2]"));
  EXPECT_THAT(
      Drain(Shuffle(Concatenate(Batch(Range(4), 2), Batch(Range(3), 3)), 9)),
      UnorderedElementsAreArray({"[0 1]", "[2 3]", "[0 1 2]"}));
}

// Elements of different ranks never share a chunk.
TEST(ConcatenateTest, RelaxesRanks) {
  const plan::Plan mixed =
      Concatenate(Concatenate(Range(3), Batch(Range(4), 2)), Range(7, 9));
  const Rows want = {"0", "1", "2", "[0 1]", "[2 3]", "7", "8"};
  EXPECT_EQ(Drain(mixed), want);
  EXPECT_THAT(Drain(Shuffle(mixed, 4)), UnorderedElementsAreArray(want));
  EXPECT_EQ(Drain(Cache(mixed)), want);
  EXPECT_EQ(Drain(Prefetch(mixed)), want);
  CheckContract(mixed);
  CheckContract(Shuffle(mixed, 4, 1, false));
  CheckContract(Interleave(Range(2), ToDataset(mixed), 2));
}

TEST(ConcatenateContract, Holds) {
  CheckContract(Concatenate(Range(20), Map(Range(20), FailsWhere(6, 5))));
  CheckContract(Concatenate(Concatenate(Words(0), Words(9)), Words(9)));
}

}  // namespace
}  // namespace penstock::engine_testing
