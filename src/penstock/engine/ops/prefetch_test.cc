#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests

using testing::ElementsAreArray;
using testing::IsEmpty;

plan::Plan Source() { return Generator(TensorOf(plan::INT64)); }

TEST(PrefetchTest, GivesItsInput) {
  for (std::optional<int64_t> size :
       std::vector<std::optional<int64_t>>{0, 1, 5, 10'000, {}}) {
    EXPECT_EQ(Drain(Prefetch(Range(3000), size)), Numbers(0, 3000));
    EXPECT_THAT(Drain(Prefetch(Range(0), size)), IsEmpty());
  }
}

TEST(PrefetchTest, ErrorsAreElements) {
  EXPECT_THAT(
      Drain(Prefetch(Map(Range(3), FailsWhere(3, 1)), 2)),
      ElementsAreArray({std::string("0"), FailureText(), std::string("2")}));
}

// Exactly so many beyond those returned, and never one more: when the source
// has given that many, the task has nothing to do, however long one waits.
TEST(PrefetchTest, RunsAheadByExactlyItsSize) {
  for (int64_t size : {0, 1, 3, 8}) {
    TestEngine engine;
    engine.sources().Set("generator", {.rows = 100});
    Reader reader(engine, Prefetch(Source(), size));
    int64_t taken = 0;
    for (int64_t step : {1, 1, 2, 5}) {
      taken += static_cast<int64_t>(reader.Read(step).size());
      while (engine.sources().rows_given() < taken + size) {
        std::this_thread::yield();
      }
      ASSERT_EQ(engine.sources().rows_given(), taken + size);
    }
  }
}

// Four chunks, but of large rows only so many as reach 16 MB.
TEST(PrefetchTest, WithoutASizeLargeRowsAreFewer) {
  for (const auto& [row_bytes, ahead] :
       {std::pair(1000, 4), {6'000'000, 3}, {20'000'000, 1}}) {
    TestEngine engine;
    Chunk row;
    row.rows = 1;
    row.columns = {MakeColumn<uint8_t>(std::vector<uint8_t>(row_bytes))
                       .Reshape(1, {row_bytes})};
    engine.sources().Set("generator", {.chunks = {10, row}});
    Reader reader(engine,
                  Prefetch(Generator(TensorOf(plan::UINT8, {row_bytes}))));
    for (int64_t taken : {1, 2, 3}) {
      while (reader.Try(1)->is_blocked()) std::this_thread::yield();
      while (engine.sources().rows_given() < taken + ahead) {
        std::this_thread::yield();
      }
      ASSERT_EQ(engine.sources().rows_given(), taken + ahead) << row_bytes;
    }
  }
}

TEST(PrefetchTest, FailureComesAfterTheRowsBeforeIt) {
  TestEngine engine({.memory_bytes = 1000});
  Reader reader(engine,
                Prefetch(Concatenate(Range(3), Shuffle(Range(2000), {})), 10));
  EXPECT_THAT(reader.Drain(),
              ElementsAreArray({"0", "1", "2", "!!RESOURCE_EXHAUSTED"}));
}

TEST(PrefetchTest, LetsItsInputGo) {
  TestEngine engine;
  engine.sources().Set("generator", {.rows = 100, .stuck_at = 4});
  for (int i = 0; i < 20; ++i) {
    Reader reader(engine, Prefetch(Prefetch(Source(), 2)));
    ASSERT_TRUE(reader.Try(1).ok());
  }
  while (engine.sources().runs_open() > 0) std::this_thread::yield();
}

// Adding or leaving out a prefetch changes neither the fingerprint nor what a
// saved state means.
TEST(PrefetchTest, StatesFitWithAndWithoutIt) {
  TestEngine engine;
  const plan::Plan shuffled = Shuffle(Range(40), 10, 3);
  plan::Plan ahead = Prefetch(Prefetch(shuffled), 4);
  const auto with = BuildOrDie(Map(ahead, AddConstant(0)));
  const auto without = BuildOrDie(Map(shuffled, AddConstant(0)));
  const Rows want = Reader(engine, without).Drain();
  EXPECT_EQ(Reader(engine, with).Drain(), want);
  for (const auto& [from, to] :
       {std::pair(with, without), std::pair(without, with)}) {
    Reader reader(engine, from);
    Rows rows = reader.Read(13, 5);
    const Rows rest = Reader::Resume(engine, to, reader.Save()).Drain();
    rows.insert(rows.end(), rest.begin(), rest.end());
    EXPECT_EQ(rows, want);
  }
}

TEST(PrefetchContract, Holds) {
  CheckContract(Prefetch(Range(50), 3));
  CheckContract(Prefetch(Range(50)));
  CheckContract(Prefetch(Range(50), 0));
  CheckContract(Prefetch(Map(Words(50), Identity()), 7));
  CheckContract(Prefetch(Batch(Prefetch(Map(Range(50), FailsWhere(7, 2))), 3)));
  CheckContract(Prefetch(Map(Prefetch(Range(50), 2), AddConstant(1), 2), 2));
  for (const auto buffer_size : {std::optional<int64_t>(), {2}, {0}}) {
    CheckContract(Skip(Prefetch(Range(50), buffer_size), 3));
  }
}

}  // namespace
}  // namespace penstock::engine_testing
