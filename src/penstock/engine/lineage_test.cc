// Values of random functions: decided by seed, epoch, pass and row, and by
// nothing that the engine chooses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using testing::SizeIs;

struct LineageCase {
  std::string name;
  plan::Plan input;  // its rows are all different ones
};

class LineageTest : public testing::TestWithParam<LineageCase> {};

TEST_P(LineageTest, EveryRowHasItsOwnValue) {
  const Rows rows = Drain(Map(GetParam().input, RandomNumber()));
  Rows values;
  for (const std::string& row : rows) {
    if (row[0] != '!') values.push_back(row);
  }
  EXPECT_GT(values.size(), 5);
  EXPECT_THAT(std::set<std::string>(values.begin(), values.end()),
              SizeIs(values.size()));
}

TEST_P(LineageTest, ChunksAndThreadsDoNotShow) {
  CheckContract(Map(GetParam().input, RandomNumber()),
                {.repeats_itself = false, .max_state_bytes = 3000});
  const plan::Plan parallel = Map(GetParam().input, RandomNumber(), 4);
  EXPECT_EQ(Drain(Map(GetParam().input, RandomNumber()), {3}).size(),
            Drain(parallel).size());
}

TEST_P(LineageTest, PassesAndEpochsDiffer) {
  TestEngine engine;
  const auto pipeline =
      BuildOrDie(Repeat(Map(GetParam().input, RandomNumber()), 2));
  const Rows first = Reader(engine, pipeline, 0).Drain();
  const Rows second = Reader(engine, pipeline, 1).Drain();
  EXPECT_NE(first, second);
  const auto half = static_cast<std::ptrdiff_t>(first.size() / 2);
  EXPECT_NE(Rows(first.begin(), first.begin() + half),
            Rows(first.begin() + half, first.end()));
  EXPECT_EQ(Reader(engine, pipeline, 0).Drain({1}), first);
}

INSTANTIATE_TEST_SUITE_P(
    Above, LineageTest,
    testing::ValuesIn<LineageCase>({
        {"Range", Range(40)},
        {"Rows", Words(20)},
        {"Batch", Batch(Range(40), 3)},
        {"BatchOfErrors", Batch(Map(Range(40), FailsWhere(5, 1)), 3)},
        {"RaggedBatch", Batch(Map(Map(Range(40), Mod(3)), UpTo()), 1)},
        {"PaddedBatch", PaddedBatch(Map(Range(20), UpTo()), 3)},
        {"PaddedBatchThatFails",
         PaddedBatch(Map(Range(20), UpTo()), 2, {{15}})},
        {"Rebatch", Rebatch(Batch(Range(40), 7), {3, 0, 1})},
        {"Unbatch", Unbatch(Batch(Range(40), 7))},
        {"RaggedUnbatch", Unbatch(Map(Range(9), UpTo()))},
        {"Zip", Zip({Range(40), Words(40)})},
        {"Concatenate", Concatenate(Range(20), Range(20))},
        {"Concatenates", Concatenate(Concatenate(Range(9), Range(9)),
                                     Concatenate(Range(9), Range(9)))},
        {"Interleave", Interleave(Range(7), ToRange(), 3, 2)},
        {"ParallelInterleave", Interleave(Range(7), ToRange(), 3, 2, 3)},
        {"SameDatasets", Interleave(Range(5), ToDataset(Range(4)), 2, 1)},
        {"FlatMap", FlatMap(Range(8), ToRange())},
        {"Repeat", Repeat(Repeat(Range(4), 3), 3)},
        {"Filter", Filter(Range(80), IsMultipleOf(3))},
        {"Shard", Shard(Range(80), 3, 1)},
        {"Shuffle", Shuffle(Range(40), 10, 1)},
        {"Cache", Cache(Range(40))},
        {"Scan", Scan(Map(Range(40), FailsWhere(9, 1)), 0, RunningSum())},
        {"Enumerate", Enumerate(Range(40))},
        {"Skip", Skip(Range(40), 10)},
        {"Prefetch", Prefetch(Range(40), 4)},
        {"IgnoreErrors", IgnoreErrors(Map(Range(40), FailsWhere(5, 1)))},
        {"ParallelMap", Map(Range(40), FailsWhere(5, 1), 3)},
    }),
    [](const auto& info) { return info.param.name; });

struct PassesCase {
  std::string name;
  plan::Plan plan;
  size_t rows;
};

class PassesTest : public testing::TestWithParam<PassesCase> {};

// Wherever the repetition is, each row of each pass and epoch draws anew, and
// the same epoch draws the same.
TEST_P(PassesTest, AllDrawAnew) {
  TestEngine engine;
  const auto pipeline = BuildOrDie(GetParam().plan);
  Rows all = Reader(engine, pipeline, 0).Drain();
  EXPECT_THAT(all, SizeIs(GetParam().rows));
  EXPECT_EQ(Reader(engine, pipeline, 0).Drain({1, 3}), all);
  const Rows next = Reader(engine, pipeline, 1).Drain();
  all.insert(all.end(), next.begin(), next.end());
  EXPECT_THAT(std::set<std::string>(all.begin(), all.end()),
              SizeIs(all.size()));
}

INSTANTIATE_TEST_SUITE_P(
    Of, PassesTest,
    testing::ValuesIn<PassesCase>({
        {"MapBefore", Repeat(Map(Range(6), RandomNumber()), 3), 18},
        {"MapAfter", Map(Repeat(Range(6), 3), RandomNumber()), 18},
        {"MapBetween", Repeat(Map(Repeat(Range(4), 2), RandomNumber()), 3), 24},
        {"MapAfterCache", Repeat(Map(Cache(Range(6)), RandomNumber()), 3), 18},
        {"Inside",
         Repeat(FlatMap(Range(3), ToDataset(Map(Range(4), RandomNumber()))), 2),
         24},
        {"InsideTheRepeated",
         FlatMap(Repeat(Range(3), 2), ToDataset(Map(Range(4), RandomNumber()))),
         24},
        {"RepeatInside",
         FlatMap(Range(3), ToDataset(Repeat(Map(Range(4), RandomNumber()), 2))),
         24},
        {"InsideTwice",
         Repeat(FlatMap(Range(2),
                        ToDataset(FlatMap(Range(2),
                                          ToDataset(Map(Range(3),
                                                        RandomNumber()))))),
                2),
         24},
        {"AfterFlatMap",
         Repeat(Map(FlatMap(Range(3), ToDataset(Range(4))), RandomNumber()), 2),
         24},
        {"Batches", Repeat(Map(Batch(Range(12), 2), RandomNumber()), 3), 18},
    }),
    [](const auto& info) { return info.param.name; });

// What a row is told apart by is the same in every repetition, so that rows
// which were kept from one fit another.
TEST(LineageTest, IsTheSameInEveryPass) {
  TestEngine engine;
  const plan::Plan plan =
      FlatMap(Range(3), ToDataset(Map(Range(2), RandomNumber())));
  const auto pipeline = BuildOrDie(plan);
  const auto lineage_of = [&](uint64_t iteration) {
    auto iterator = engine::Iterator::Start(pipeline, engine.environment(),
                                            engine.instances(), 0);
    engine::Scope scope;
    scope.run = std::const_pointer_cast<engine::Run>((*iterator)->run());
    scope.iteration = iteration;
    auto stream = pipeline->root().Start(scope);
    std::vector<uint64_t> words;
    Rows values;
    for (;;) {
      auto pull = (*stream)->Next({100, nullptr});
      if (!pull->has_rows()) break;
      const auto* word = pull->chunk.lineage.As<uint64_t>();
      words.insert(words.end(), word, word + pull->chunk.rows);
      for (std::string& row : ToText(pull->chunk)) values.push_back(row);
    }
    return std::make_pair(words, values);
  };
  const auto [first, first_values] = lineage_of(0);
  const auto [second, second_values] = lineage_of(7);
  EXPECT_THAT(first, SizeIs(6));
  EXPECT_EQ(first, second);
  EXPECT_NE(first_values, second_values);
}

// The values of the rows do not depend on what reads them.
TEST(LineageTest, ShuffledRowsKeepTheirValues) {
  const plan::Plan pairs = Map(Range(30), [] {
    FunctionBuilder f;
    const auto x = f.Arg(0);
    return f.ReturnTuple({x, f.Call("random_int", {f.Constant(Vector({})),
                                                   f.Int(0), f.Int(1 << 30)})});
  }());
  Rows in_order = Drain(pairs);
  Rows shuffled = Drain(Shuffle(pairs, 7));
  std::sort(in_order.begin(), in_order.end());
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(in_order, shuffled);
}

}  // namespace
}  // namespace penstock::engine_testing
