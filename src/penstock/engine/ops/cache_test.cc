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

plan::Plan Source() { return Generator(TensorOf(plan::INT64)); }

class CacheTest : public testing::Test {
 protected:
  CacheTest() { engine_.sources().Set("generator", {.rows = 10}); }

  int64_t computed() { return engine_.sources().rows_given(); }

  TestEngine engine_;
};

TEST_F(CacheTest, SecondPassDoesNotTouchTheInput) {
  const auto pipeline = BuildOrDie(Repeat(Cache(Source()), 3));
  EXPECT_THAT(Reader(engine_, pipeline).Drain(), SizeIs(30));
  EXPECT_EQ(computed(), 10);
  EXPECT_THAT(Reader(engine_, pipeline).Drain(), SizeIs(30));
  EXPECT_EQ(computed(), 10);
}

TEST_F(CacheTest, TwoDatasetsDoNotShare) {
  Reader(engine_, Cache(Source())).Drain();
  Reader(engine_, Cache(Source())).Drain();
  EXPECT_EQ(computed(), 20);
}

TEST_F(CacheTest, UnfinishedPassIsDiscarded) {
  const auto pipeline = BuildOrDie(Repeat(Take(Cache(Source()), 4), 2));
  EXPECT_THAT(Reader(engine_, pipeline).Drain(),
              ElementsAreArray({"0", "1", "2", "3", "0", "1", "2", "3"}));
  EXPECT_EQ(computed(), 8);
  EXPECT_THAT(engine_.warnings(), SizeIs(2));
  EXPECT_THAT(engine_.warnings()[0], HasSubstr("unfinished pass"));
  EXPECT_EQ(engine_.memory().used(), 0);
}

// Its cardinality is known: the last row makes it whole.
TEST_F(CacheTest, IsWholeWithoutSeeingTheEnd) {
  const auto pipeline = BuildOrDie(Repeat(Take(Cache(Range(4)), 4), 2));
  Reader(engine_, pipeline).Drain();
  EXPECT_THAT(engine_.warnings(), IsEmpty());
}

TEST_F(CacheTest, TwoMayFillItAtOnce) {
  const auto pipeline = BuildOrDie(Cache(Source()));
  Reader first(engine_, pipeline);
  Reader second(engine_, pipeline);
  first.Read(5);
  second.Read(7);
  EXPECT_THAT(second.Drain(), SizeIs(3));
  EXPECT_THAT(first.Drain(), SizeIs(5));
  EXPECT_EQ(computed(), 20);
  EXPECT_THAT(Reader(engine_, pipeline).Drain(),
              ElementsAreArray(Numbers(0, 10)));
  EXPECT_EQ(computed(), 20);
}

// At every position, with the rows at hand and in an engine without them.
TEST_F(CacheTest, RestoresWithAndWithoutTheRows) {
  const auto pipeline = BuildOrDie(Cache(Source()));
  for (int64_t at = 0; at <= 10; ++at) {
    Reader reader(engine_, pipeline);
    reader.Read(at);
    const std::string state = reader.Save();
    EXPECT_EQ(Reader::Resume(engine_, pipeline, state).Drain(),
              Numbers(at, 10));
    TestEngine other;
    other.sources().Set("generator", {.rows = 10});
    Reader resumed = Reader::Resume(other, pipeline, state);
    const std::string again = resumed.Save();
    EXPECT_EQ(resumed.Drain({2}), Numbers(at, 10));
    EXPECT_EQ(other.sources().rows_given(), 10) << "filled from the beginning";
    TestEngine third;
    third.sources().Set("generator", {.rows = 10, .is_hesitant = true});
    EXPECT_EQ(Reader::Resume(third, pipeline, again).Drain({1}),
              Numbers(at, 10));
    // It was filled on the way.
    EXPECT_EQ(Reader(third, pipeline).Drain(), Numbers(0, 10));
    EXPECT_EQ(third.sources().rows_given(), 10);
  }
}

TEST_F(CacheTest, PassWithErrorsIsNotKept) {
  engine_.sources().Set("generator", {.rows = 10, .errors = {3}});
  const auto pipeline = BuildOrDie(Cache(Source()));
  EXPECT_THAT(Reader(engine_, pipeline).Drain(), SizeIs(10));
  EXPECT_EQ(engine_.memory().used(), 0);
  EXPECT_THAT(Reader(engine_, pipeline).Drain(), SizeIs(10));
  EXPECT_EQ(computed(), 20);
  EXPECT_THAT(engine_.warnings(), IsEmpty());
}

TEST_F(CacheTest, KeepsTheOrderOfShuffles) {
  const plan::Plan cached = Cache(Shuffle(Range(20), 20));
  const auto pipeline = BuildOrDie(Repeat(Zip({cached, cached}), 3));
  Reader reader(engine_, pipeline);
  const Rows first = reader.Read(20);
  EXPECT_EQ(reader.Read(20), first);
  EXPECT_EQ(reader.Read(20), first);
}

// Rows asked for one by one do not stay alone.
TEST_F(CacheTest, KeepsRowsTogether) {
  const auto pipeline = BuildOrDie(Cache(Range(5000)));
  Reader(engine_, pipeline).Drain({1});
  Reader reader(engine_, pipeline);
  int pulls = 0;
  while (!reader.Next(10'000)->is_end()) ++pulls;
  EXPECT_LT(pulls, 30);
  EXPECT_EQ(Reader(engine_, pipeline).Drain({7}), Numbers(0, 5000));
}

TEST_F(CacheTest, RefusesRowsThatDoNotFit) {
  TestEngine engine({.memory_bytes = 1000});
  EXPECT_EQ(Reader(engine, Cache(Counter())).Drain({10}).back(),
            "!!RESOURCE_EXHAUSTED");
  EXPECT_EQ(engine.memory().used(), 0);
}

TEST_F(CacheTest, GoesWithItsDataset) {
  const plan::Plan plan = Cache(Source());
  Reader(engine_, plan).Drain();
  EXPECT_GT(engine_.memory().used(), 0);
  engine_.caches().Drop(plan.nodes(plan.nodes_size() - 1).instance());
  EXPECT_EQ(engine_.memory().used(), 0);
}

// Each element's dataset has a cache of its own, found again by every pass.
TEST_F(CacheTest, InsideAFunctionIsKeptPerElement) {
  FunctionBuilder f;
  const auto x = f.Arg(0);
  Node node;
  node.mutable_cache();
  const plan::Plan cached = AppendOrDie(
      {RangeTo(Bound(0), {LeafOf(plan::INT64)})}, node, {LeafOf(plan::INT64)});
  const auto pipeline = BuildOrDie(
      Repeat(FlatMap(Ints({1, 3, 2}), f.ReturnDataset(cached, {x})), 2));
  const Rows want = {"0", "0", "1", "2", "0", "1",
                     "0", "0", "1", "2", "0", "1"};
  Reader reader(engine_, pipeline);
  EXPECT_EQ(reader.Read(6), Rows(want.begin(), want.begin() + 6));
  const int64_t used = engine_.memory().used();
  EXPECT_EQ(reader.Drain(), Rows(want.begin() + 6, want.end()));
  EXPECT_EQ(engine_.memory().used(), used) << "the second pass made new caches";
  EXPECT_EQ(Reader(engine_, pipeline).Drain({2}), want);
}

TEST(CacheContract, Holds) {
  CheckContract(Cache(Range(40)));
  CheckContract(Cache(Map(Words(40), Identity())));
  CheckContract(Cache(Map(Range(12), UpTo())));
  CheckContract(Cache(Map(Range(20), FailsWhere(6, 1))));
  CheckContract(Map(Repeat(Cache(Batch(Range(20), 3)), 2), Identity(), 2));
}

}  // namespace
}  // namespace penstock::engine_testing
