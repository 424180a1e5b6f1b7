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

plan::Plan Source() { return Generator(TensorOf(plan::INT64)); }

ContractOptions With(FakeSource source) {
  ContractOptions options;
  options.set_up = [source](TestEngine& engine) {
    engine.sources().Set("generator", source);
  };
  return options;
}

TEST(GeneratorTest, GivesItsRowsAndErrors) {
  TestEngine engine;
  engine.sources().Set("generator", {.rows = 4, .errors = {1}});
  EXPECT_THAT(Reader(engine, Source()).Drain(),
              ElementsAre("0", "!DATA_LOSS", "2", "3"));
}

TEST(GeneratorTest, GoesWhenItsIteratorDoes) {
  TestEngine engine;
  engine.sources().Set("generator", {.rows = 100});
  {
    Reader reader(engine, Source());
    reader.Read(3);
    EXPECT_EQ(engine.sources().runs_open(), 1);
  }
  EXPECT_EQ(engine.sources().runs_open(), 0);
}

TEST(GeneratorTest, RefusesRowsOfAnotherType) {
  TestEngine engine;
  FakeSource source;
  source.chunks.resize(1);
  source.chunks[0].rows = 1;
  source.chunks[0].columns = {ZeroColumn(DType::kFloat32, {}, 1)};
  engine.sources().Set("generator", source);
  EXPECT_EQ(Reader(engine, Source()).Next(1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// With a prefetch size given, nothing else may be computed.
TEST(GeneratorTest, IsAskedForExactlyWhatIsTaken) {
  const Function identity = Identity();
  for (const plan::Plan& plan :
       {Source(), Map(Source(), identity), Map(Source(), identity, 4),
        Filter(Source(), IsMultipleOf(1)), Batch(Source(), 1), Cache(Source()),
        Zip({Source(), Range(100)}), Enumerate(Source()), Repeat(Source()),
        Unbatch(Batch(Source(), 1)), Scan(Source(), 0, RunningSum()),
        Concatenate(Source(), Range(3)), IgnoreErrors(Source())}) {
    TestEngine engine;
    engine.sources().Set("generator", {.rows = 100});
    Reader reader(engine, Take(Prefetch(plan, 0), 3));
    reader.Drain();
    EXPECT_EQ(engine.sources().rows_given(), 3)
        << plan.nodes(plan.nodes_size() - 1).ShortDebugString();
  }
}

// Demand travels upstream through what runs inline, exact or not.
TEST(GeneratorTest, IsAskedForLittleMore) {
  TestEngine engine;
  engine.sources().Set("generator", {.rows = 100'000});
  Reader(engine, Take(Map(Source(), Identity(), 1), 3)).Drain();
  EXPECT_EQ(engine.sources().rows_given(), 3);
  Reader(engine, Take(Batch(Source(), 2), 3)).Drain();
  EXPECT_EQ(engine.sources().rows_given(), 3 + 6);
  Reader(engine, Take(Shuffle(Source(), 10), 3)).Drain();
  EXPECT_EQ(engine.sources().rows_given(), 9 + 13);
}

// Inside functions, too: only the datasets whose turn it is are asked.
TEST(GeneratorTest, InsideFunctionsIsAskedForExactlyWhatIsTaken) {
  for (int64_t parallelism : {1, 3}) {
    TestEngine engine;
    engine.sources().Set("generator", {.rows = 50, .is_hesitant = true});
    Reader(engine, Take(Prefetch(Interleave(Range(9), ToDataset(Source()), 3, 2,
                                            parallelism),
                                 0),
                        5))
        .Drain();
    EXPECT_EQ(engine.sources().rows_given(), 5);
    EXPECT_EQ(engine.sources().runs_opened(), 3);
  }
}

TEST(GeneratorContract, Holds) {
  CheckContract(Source(), With({.rows = 40, .errors = {0, 7, 39}}));
  CheckContract(Source(), With({.rows = 40, .is_hesitant = true}));
  CheckContract(Source(), With({.rows = 0}));
}

// Everything above a source that makes one wait.
TEST(GeneratorContract, HoldsAbove) {
  const ContractOptions slow =
      With({.rows = 40, .errors = {5, 6, 20}, .is_hesitant = true});
  CheckContract(Map(Source(), AddConstant(1)), slow);
  CheckContract(Map(Source(), AddConstant(1), 3), slow);
  CheckContract(Filter(Source(), IsMultipleOf(3)), slow);
  CheckContract(Batch(Source(), 4), slow);
  CheckContract(Unbatch(Batch(Source(), 4)), slow);
  CheckContract(Rebatch(Batch(Source(), 4), {3, 1}), slow);
  CheckContract(Shuffle(Source(), 7, 1, false), slow);
  CheckContract(Prefetch(Source(), 3), slow);
  CheckContract(Prefetch(Source()), slow);
  CheckContract(Zip({Source(), Source()}), slow);
  CheckContract(Concatenate(Source(), Source()), slow);
  CheckContract(Scan(Source(), 0, RunningSum()), slow);
  CheckContract(Reduce(Source(), 0, Sum()), slow);
  CheckContract(IgnoreErrors(Source()), slow);
  CheckContract(Interleave(Take(Source(), 5), ToRange(), 2, 2), slow);
  CheckContract(Interleave(Range(4), ToDataset(Source()), 3, 2), slow);
  CheckContract(Interleave(Range(4), ToDataset(Source()), 3, 2, 2), slow);
  CheckContract(FlatMap(Range(3), ToDataset(Source())), slow);
}

// An iterator may go while its source never answers.
TEST(GeneratorContract, GoesWhileItWaits) {
  for (const plan::Plan& plan :
       {Source(), Prefetch(Source()), Map(Source(), Identity(), 4),
        Shuffle(Source(), 100), Batch(Source(), 100), Cache(Source()),
        Interleave(Range(4), ToDataset(Source()), 3, 2, 2),
        Zip({Range(3), Prefetch(Source(), 2)})}) {
    TestEngine engine;
    engine.sources().Set("generator", {.rows = 100, .stuck_at = 10});
    Reader reader(engine, plan);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(reader.Try(1).ok());
    const std::string state = reader.Save();
    Reader resumed = Reader::Resume(engine, BuildOrDie(plan), state);
    ASSERT_TRUE(resumed.Try(1).ok());
  }
}

}  // namespace
}  // namespace penstock::engine_testing
