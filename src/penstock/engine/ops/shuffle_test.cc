#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests

using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

struct ShuffleCase {
  std::string name;
  plan::Plan input;
  std::optional<int64_t> window;
};

class ShuffleTest : public testing::TestWithParam<ShuffleCase> {};

TEST_P(ShuffleTest, KeepsTheRows) {
  const Rows rows = Drain(GetParam().input);
  const plan::Plan plan = Shuffle(GetParam().input, GetParam().window, 1);
  EXPECT_THAT(Drain(plan), UnorderedElementsAreArray(rows));
  EXPECT_EQ(Drain(plan), Drain(plan, {1}));
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, ShuffleTest,
    testing::ValuesIn<ShuffleCase>({
        {"Window", Range(100), 10},
        {"WindowOfOne", Range(10), 1},
        {"LargerThanInput", Range(10), 100},
        {"WholeInput", Range(100), {}},
        {"Empty", Range(0), 10},
        {"Words", Words(60), 10},
        {"Ragged", Map(Range(20), UpTo()), 6},
        {"Wide", Batch(Range(60), 3), 5},
        {"Components", Zip({Range(50), Words(50), Map(Range(50), UpTo())}), 9},
        {"Errors", Map(Range(50), FailsWhere(5, 1)), 7},
        {"ErrorsAmongRagged", Map(Map(Range(20), FailsWhere(5, 1)), UpTo()), 7},
    }),
    [](const auto& info) { return info.param.name; });

TEST(ShuffleTest, WindowOfOneKeepsOrder) {
  EXPECT_THAT(Drain(Shuffle(Range(20), 1)), ElementsAreArray(Numbers(0, 20)));
}

TEST(ShuffleTest, SeedDecides) {
  const auto order = [](uint64_t seed) {
    return Drain(Shuffle(Range(50), 20, seed));
  };
  EXPECT_EQ(order(5), order(5));
  EXPECT_NE(order(5), order(6));
  EXPECT_EQ(order(0), order(0));
  EXPECT_NE(order(0), order(1));
}

// Which passes have the same order: across repeat, and across iterators.
TEST(ShuffleTest, ReshufflesIfAsked) {
  for (bool reshuffle : {false, true}) {
    TestEngine engine;
    const auto pipeline =
        BuildOrDie(Repeat(Shuffle(Range(30), 30, 9, reshuffle), 2));
    Reader reader(engine, pipeline, std::nullopt);
    const Rows first = reader.Read(30);
    EXPECT_EQ(first != reader.Read(30), reshuffle);
    Reader again(engine, pipeline, std::nullopt);
    EXPECT_EQ(first != again.Read(30), reshuffle);
  }
}

// Nested repeats: every pass has an order of its own.
TEST(ShuffleTest, EveryPassDiffers) {
  TestEngine engine;
  Reader reader(engine, Repeat(Repeat(Shuffle(Range(30), 30, 9), 3), 3));
  std::set<Rows> orders;
  for (int pass = 0; pass < 9; ++pass) orders.insert(reader.Read(30));
  EXPECT_EQ(orders.size(), 9);
}

TEST(ShuffleTest, EmptyPassesEnd) {
  EXPECT_THAT(Drain(Repeat(Shuffle(Range(0), 5))), IsEmpty());
  EXPECT_THAT(Drain(Repeat(Shuffle(Range(0), 5), 1000)), IsEmpty());
  EXPECT_THAT(
      Drain(Repeat(Concatenate(Shuffle(Range(2), 5), Shuffle(Range(0), 5)), 2)),
      testing::SizeIs(4));
}

// Each of 5 elements is first about as often as the others. With 4 degrees of
// freedom, 1 run in 10,000 is above 23.5; the seeds are fixed.
TEST(ShuffleTest, IsUniform) {
  TestEngine engine;
  std::map<std::string, int> counts;
  constexpr int kRuns = 1000;
  for (int seed = 0; seed < kRuns; ++seed) {
    ++counts[Reader(engine, Shuffle(Range(5), 5, seed)).Read(1)[0]];
  }
  double chi_square = 0;
  for (const auto& [row, count] : counts) {
    const double expected = kRuns / 5.0;
    chi_square += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi_square, 23.5);
}

TEST(ShuffleTest, RefusesAWindowThatCannotFit) {
  TestEngine engine({.memory_bytes = 100'000});
  Reader reader(engine, Shuffle(Counter(), 1'000'000));
  const absl::Status status = reader.Next(1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("Lower the window"));
}

TEST(ShuffleTest, GivesItsMemoryBack) {
  TestEngine engine;
  {
    Reader reader(engine, Shuffle(Words(100), 50));
    reader.Read(1);
    EXPECT_GT(engine.memory().used(), 50);
  }
  EXPECT_EQ(engine.memory().used(), 0);
}

// Rows that grow after the window was filled are charged, too.
TEST(ShuffleTest, ChargesRowsThatGrow) {
  std::vector<std::string> words(20, "a");
  for (int i = 0; i < 200; ++i) words.emplace_back(1000, 'b');
  TestEngine engine({.memory_bytes = 10'000});
  Reader reader(engine, Shuffle(Strings(words), 20));
  Rows rows = reader.Drain({10});
  EXPECT_EQ(rows.back(), "!!RESOURCE_EXHAUSTED");
}

TEST(ShuffleContract, Holds) {
  CheckContract(Shuffle(Range(50), 10, 1, false));
  CheckContract(Shuffle(Range(50), {}, 1, false));
  CheckContract(Shuffle(Range(50), 200, 1, false));
  CheckContract(Shuffle(Words(40), 7, 1, false));
  CheckContract(Shuffle(Map(Range(40), FailsWhere(6, 1)), 7, 1, false));
  CheckContract(Shuffle(Range(50), 10), {.repeats_itself = false});
  CheckContract(Shuffle(Shuffle(Range(50), 5, 1, false), 5, 2, false));
}

// Past several recordings of the window, with windows small and large.
TEST(ShuffleContract, RestoresFarIn) {
  constexpr int64_t kRows = 120'000;
  for (std::optional<int64_t> window :
       std::vector<std::optional<int64_t>>{1, 2, 3, 17, 50, 5000, 40'000, {}}) {
    TestEngine engine;
    const auto pipeline = BuildOrDie(Shuffle(Range(kRows), window, 3));
    const Rows want = Reader(engine, pipeline).Drain();
    Reader reader(engine, pipeline);
    int64_t given = 0;
    for (int64_t at : {1, 16'383, 16'385, 40'000, 70'001, 119'990}) {
      reader.Read(at - given, 777);
      given = at;
      const std::string state = reader.Save();
      Reader resumed = Reader::Resume(engine, pipeline, state);
      EXPECT_LE(resumed.Save().size(), state.size() + 8);
      const Rows rest = resumed.Read(20'000);
      const auto begin = want.begin() + at;
      const auto end = begin + static_cast<int64_t>(rest.size());
      ASSERT_EQ(rest, Rows(begin, end))
          << "window " << window.value_or(0) << " at " << at;
      // And from a state saved on the way.
      Reader last = Reader::Resume(engine, pipeline, resumed.Save());
      const Rows more = last.Read(100);
      ASSERT_EQ(more, Rows(end, end + static_cast<int64_t>(more.size())));
      EXPECT_LE(state.size(), 300 + 4 * window.value_or(kRows));
    }
  }
}

}  // namespace
}  // namespace penstock::engine_testing
