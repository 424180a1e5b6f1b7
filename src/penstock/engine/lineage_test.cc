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
