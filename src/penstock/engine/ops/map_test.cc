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

TEST(MapTest, KeepsOrder) {
  EXPECT_THAT(Drain(Map(Range(3), AddConstant(10))),
              ElementsAre("10", "11", "12"));
  for (int64_t parallelism : {1, 2, 16}) {
    EXPECT_EQ(Drain(Map(Range(20'000), AddConstant(1), parallelism)),
              Numbers(1, 20'001));
  }
}

TEST(MapTest, AnErrorIsOneElement) {
  for (int64_t parallelism : {1, 4}) {
    EXPECT_THAT(Drain(Map(Range(5), FailsWhere(5, 2), parallelism)),
                ElementsAre("0", "1", FailureText(), "3", "4"));
  }
}

TEST(MapTest, ErrorNamesItsNode) {
  TestEngine engine;
  Reader reader(engine, Map(Range(1), FailsWhere(1, 0)));
  const absl::StatusOr<engine::Pull> pull = reader.Next(1);
  EXPECT_THAT(std::string(pull->chunk.errors[0].status.message()),
              HasSubstr("at node \"map_1\""));
}

TEST(MapTest, WithoutOrderLosesNothing) {
  const Rows rows = Drain(Unordered(Map(Range(30'000), AddConstant(0), 4)));
  EXPECT_THAT(std::set<std::string>(rows.begin(), rows.end()), SizeIs(30'000));
  EXPECT_THAT(rows, SizeIs(30'000));
}

// A run that fails gives the rows before the failure first.
TEST(MapTest, RowsBeforeAFailureComeFirst) {
  TestEngine engine({.memory_bytes = 1000});
  Reader reader(engine, Map(Concatenate(Range(5), Shuffle(Range(2000), {})),
                            AddConstant(0), 4));
  EXPECT_THAT(reader.Drain({1}),
              ElementsAre("0", "1", "2", "3", "4", "!!RESOURCE_EXHAUSTED"));
}

// x -> 6,144 times x: 48 KiB.
plan::Function Wide() {
  FunctionBuilder f("wide");
  const auto size = f.Constant(Vector({6144}));
  return f.Return(f.Call("fill", {size, f.Arg(0)}));
}

// Somebody who asks for few rows at a time, as a small prefetch does, is not
// taken for one whose tasks are too short.
TEST(MapTest, HoldsNoMoreThanItsWindow) {
  constexpr int64_t kRowBytes = 49'152;
  constexpr int64_t kParallelism = 8;
  TestEngine engine;
  Reader reader(engine, Map(Range(1'000'000), Wide(), kParallelism));
  int64_t given = 0;
  for (int pulls = 0; pulls < 500; ++pulls) {
    const absl::StatusOr<engine::Pull> pull = reader.Next(10);
    ASSERT_TRUE(pull.ok() && pull->has_rows());
    given += pull->chunk.rows;
  }
  const auto read = static_cast<int64_t>(reader.run()->stats[0].rows.load());
  EXPECT_LE((read - given) * kRowBytes,
            2 * kParallelism * engine::kMaxChunkBytes);
}

// x -> an array of ones of x dimensions: rows of several ranks.
plan::Function RankIs() {
  FunctionBuilder f("rank_is");
  const auto shape = f.Call("add", {f.Call("arange", {f.Arg(0)}), f.Int(1)});
  const auto ones = f.Call("equal", {shape, shape});
  plan::Attr dtype;
  dtype.set_dtype(plan::INT64);
  const auto sizes = f.Call("cast", {ones}, {{"dtype", dtype}});
  return f.Return(f.Call("fill", {sizes, f.Int(7)}));
}

TEST(MapTest, RowsMayHaveSeveralRanks) {
  for (int64_t parallelism : {1, 3}) {
    EXPECT_THAT(Drain(Map(Ints({0, 2, 1, 1, 0}), RankIs(), parallelism)),
                ElementsAre("7", "[[7]]", "[7]", "[7]", "7"));
  }
  CheckContract(Map(Ints({0, 2, 1, 1, 0, 3}), RankIs()));
}

TEST(MapContract, Holds) {
  CheckContract(Map(Range(40), Pair()));
  CheckContract(Map(Range(40), FailsWhere(7, 3)));
  CheckContract(Map(Words(40), Identity()));
  CheckContract(Map(Range(12), UpTo()));
  CheckContract(Map(Range(0), UpTo()));
}

TEST(MapContract, HoldsInParallel) {
  CheckContract(Map(Range(50), AddConstant(1), 4));
  CheckContract(Map(Range(50), FailsWhere(7, 3), 2));
  CheckContract(Map(Range(12), UpTo(), 3));
  CheckContract(Map(Map(Range(50), AddConstant(1), 2), AddConstant(1), 2));
  CheckContract(Unordered(Map(Range(50), FailsWhere(7, 3), 4)),
                {.is_ordered = false});
}

// The first row takes long, so that others overtake it. Wherever the state is
// saved, every row is given once: before the save or after a restore.
TEST(MapContract, StateWithoutOrderLosesAndRepeatsNothing) {
  FunctionBuilder f;
  const Function count =
      f.Return(f.Call("size", {f.Call("arange", {f.Arg(0)})}));
  std::vector<int64_t> sizes = {3'000'000};
  for (int64_t i = 1; i < 40; ++i) sizes.push_back(i);
  for (int64_t parallelism : {1, 4}) {
    TestEngine engine;
    const auto pipeline = BuildOrDie(Unordered(Map(Ints(sizes), count, 4)));
    const auto other =
        BuildOrDie(Unordered(Map(Ints(sizes), count, parallelism)));
    for (int64_t rows : {1, 2, 5, 20, 38}) {
      Reader reader(engine, pipeline);
      Rows all = reader.Read(rows, 1);
      Reader resumed = Reader::Resume(engine, other, reader.Save());
      const Rows more = resumed.Read(1, 1);
      all.insert(all.end(), more.begin(), more.end());
      Reader last = Reader::Resume(engine, pipeline, resumed.Save());
      const Rows rest = last.Drain();
      all.insert(all.end(), rest.begin(), rest.end());
      EXPECT_THAT(all, UnorderedElementsAreArray(Numbers(sizes)));
    }
  }
}

// A saved state does not depend on how many calls run at once.
TEST(MapContract, StateFitsAnyParallelism) {
  TestEngine engine;
  const auto one = BuildOrDie(Map(Range(50), AddConstant(1)));
  const auto four = BuildOrDie(Map(Range(50), AddConstant(1), 4));
  Reader reader(engine, one);
  reader.Read(20);
  EXPECT_EQ(Reader::Resume(engine, four, reader.Save()).Drain(),
            Numbers(21, 51));
  Reader other(engine, four);
  other.Read(33, 2);
  EXPECT_EQ(Reader::Resume(engine, one, other.Save()).Drain(), Numbers(34, 51));
}

}  // namespace
}  // namespace penstock::engine_testing
