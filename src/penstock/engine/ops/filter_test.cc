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

TEST(FilterTest, KeepsWhatHolds) {
  EXPECT_THAT(Drain(Filter(Range(7), IsMultipleOf(3))),
              ElementsAre("0", "3", "6"));
  EXPECT_THAT(Drain(Filter(Range(7), IsLessThan(0))), IsEmpty());
}

TEST(FilterTest, KeepsErrors) {
  EXPECT_THAT(Drain(Filter(Map(Range(6), FailsWhere(6, 1)), IsMultipleOf(2))),
              ElementsAre("0", FailureText(), "2", "4"));
}

// Long runs of nothing end, and let others have their turn.
TEST(FilterTest, SearchesFar) {
  EXPECT_THAT(Drain(Filter(Range(3'000'000), IsMultipleOf(2'999'999))),
              ElementsAre("0", "2999999"));
  EXPECT_THAT(Drain(Filter(Range(2000), IsMultipleOf(1999)), {1}),
              ElementsAre("0", "1999"));
}

plan::Plan Tenths() {
  return Filter(Generator(TensorOf(plan::INT64)), IsMultipleOf(10));
}

// The rows that a filter keeps of several pulls go together, and it pulls no
// more than it may have to.
TEST(FilterTest, GathersWhereFewAreKept) {
  TestEngine engine;
  engine.sources().Set("generator", {.rows = 100'000});
  Reader reader(engine, Tenths());
  const absl::StatusOr<engine::Pull> pull = reader.Next(16);
  ASSERT_TRUE(pull.ok());
  // Time may be up sooner on a busy machine, but with the first pull's one or
  // two it does not end.
  EXPECT_GT(pull->chunk.rows, 2);
  EXPECT_LE(pull->chunk.rows, 16);
  EXPECT_LE(engine.sources().rows_given(), 10 * pull->chunk.rows + 16);
  for (int64_t row = 0; row < pull->chunk.rows; ++row) {
    EXPECT_EQ(*pull->chunk.columns[0].Row<int64_t>(row), 10 * row);
  }
}

TEST(FilterTest, GivesWhatItHasBeforeItWaits) {
  TestEngine engine;
  engine.sources().Set("generator", {.rows = 100, .stuck_at = 25});
  Reader reader(engine, Tenths());
  EXPECT_EQ(reader.Next(1000)->chunk.rows, 3);
  EXPECT_TRUE(reader.Try(1000)->is_blocked());
}

TEST(FilterTest, FailureComesAfterTheRowsBeforeIt) {
  TestEngine engine({.memory_bytes = 1000});
  Reader reader(engine, Filter(Concatenate(Range(13), Shuffle(Range(2000), {})),
                               IsMultipleOf(10)));
  EXPECT_THAT(reader.Drain(), ElementsAre("0", "10", "!!RESOURCE_EXHAUSTED"));
}

struct TakeWhileCase {
  std::string name;
  plan::Plan plan;
  Rows want;
};

class TakeWhileTest : public testing::TestWithParam<TakeWhileCase> {};

TEST_P(TakeWhileTest, StopsForGood) {
  EXPECT_EQ(Drain(GetParam().plan), GetParam().want);
  EXPECT_EQ(Drain(GetParam().plan, {1}), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, TakeWhileTest,
    testing::ValuesIn<TakeWhileCase>({
        {"Some", TakeWhile(Range(9), IsLessThan(2)), {"0", "1"}},
        {"None", TakeWhile(Range(9), IsLessThan(0)), {}},
        {"All", TakeWhile(Range(2), IsLessThan(9)), {"0", "1"}},
        {"LaterOnesMayHold", TakeWhile(Ints({1, 5, 1}), IsLessThan(2)), {"1"}},
        {"Infinite", TakeWhile(Counter(), IsLessThan(2)), {"0", "1"}},
        {"Repeated",
         Repeat(TakeWhile(Range(9), IsLessThan(2)), 2),
         {"0", "1", "0", "1"}},
        {"GoesOnAfterErrors",
         TakeWhile(Map(Range(9), FailsWhere(9, 1)), IsLessThan(3)),
         {"0", FailureText(), "2"}},
    }),
    [](const auto& info) { return info.param.name; });

TEST(FilterContract, Holds) {
  CheckContract(Filter(Range(120), IsMultipleOf(3)));
  // Strings, rows of different sizes, and large ones, of several pulls.
  CheckContract(Filter(Enumerate(Words(120)), IsMultipleOf(5)));
  CheckContract(Filter(Enumerate(Map(Range(120), UpTo())), IsMultipleOf(5)));
  CheckContract(Filter(Enumerate(Batch(Range(12'000), 100)), IsMultipleOf(5)));
  // Random numbers hang on where a row came from.
  CheckContract(Map(Filter(Range(120), IsMultipleOf(5)), RandomNumber()),
                {.repeats_itself = false});
  CheckContract(Filter(Map(Range(60), FailsWhere(7, 2)), IsMultipleOf(2)));
  CheckContract(TakeWhile(Range(50), IsLessThan(20)));
  CheckContract(TakeWhile(Map(Range(50), FailsWhere(7, 2)), IsLessThan(20)));
}

}  // namespace
}  // namespace penstock::engine_testing
