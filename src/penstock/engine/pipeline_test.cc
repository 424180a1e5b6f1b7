#include "penstock/engine/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using testing::HasSubstr;

absl::Status ResumeStatus(const plan::Plan& plan, std::string_view state) {
  TestEngine engine;
  return engine::Iterator::Resume(BuildOrDie(plan), engine.environment(),
                                  engine.instances(), state, 0)
      .status();
}

std::string StateOf(const plan::Plan& plan, int64_t rows) {
  TestEngine engine;
  Reader reader(engine, plan);
  reader.Read(rows);
  return reader.Save();
}

TEST(Resume, RefusesAnotherPipeline) {
  const absl::Status status =
      ResumeStatus(Range(6), StateOf(Batch(Range(5), 2), 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("expected a state of this pipeline"))
      << status.message();
}

TEST(Resume, RefusesAnotherVersion) {
  std::string state = StateOf(Range(5), 1);
  state[0] = 99;
  EXPECT_EQ(ResumeStatus(Range(5), state).code(),
            absl::StatusCode::kInvalidArgument);
}

// Every truncation and every flipped bit is noticed.
TEST(Resume, RefusesDamage) {
  const plan::Plan plan =
      Shuffle(Interleave(Range(9), ToRange(), 3, 2, 2), 5, 1);
  const std::string state = StateOf(plan, 10);
  for (size_t size = 0; size < state.size(); ++size) {
    EXPECT_FALSE(ResumeStatus(plan, state.substr(0, size)).ok()) << size;
  }
  for (size_t i = 0; i < state.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = state;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      EXPECT_FALSE(ResumeStatus(plan, flipped).ok()) << i << " bit " << bit;
    }
  }
}

TEST(Resume, KeepsTheSeedThatWasDrawn) {
  const plan::Plan plan = Shuffle(Range(40), 40);
  TestEngine engine;
  const auto pipeline = BuildOrDie(plan);
  Reader reader(engine, pipeline, 5);
  Rows rows = reader.Read(10);
  TestEngine other;
  const Rows rest = Reader::Resume(other, pipeline, reader.Save()).Drain();
  rows.insert(rows.end(), rest.begin(), rest.end());
  EXPECT_EQ(rows, Reader(engine, pipeline, 5).Drain());
}

// A failed run stays failed.
TEST(Iterator, FailsForGood) {
  TestEngine engine({.memory_bytes = 1000});
  Reader reader(engine, Shuffle(Range(5000), {}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(reader.Next(1).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
}

TEST(Iterator, SetEpochDecidesTheOrder) {
  TestEngine engine;
  const auto pipeline = BuildOrDie(Shuffle(Range(20), 20, 4));
  const Rows third = Reader(engine, pipeline, 3).Drain();
  Reader(engine, pipeline, std::nullopt).Drain();
  EXPECT_EQ(Reader(engine, pipeline, 3).Drain(), third);
  EXPECT_NE(Reader(engine, pipeline, 2).Drain(), third);
}

// Engines that know nothing of each other agree, whatever they did before; a
// seed of the plan's own stays.
TEST(Iterator, AgreesWithOthersOfItsSeed) {
  TestEngine one;
  TestEngine other;
  const auto pipeline = BuildOrDie(Shuffle(Shuffle(Range(20), 20, 4), 20));
  Reader(other, pipeline, std::nullopt).Drain();
  EXPECT_EQ(Reader(one, pipeline, 0, 9).Drain(),
            Reader(other, pipeline, 0, 9).Drain());
  EXPECT_NE(Reader(one, pipeline, 0, 9).Drain(),
            Reader(one, pipeline, 0, 8).Drain());
  // Nothing was counted: the next iterator is the first.
  const auto given = BuildOrDie(Shuffle(Range(20), 20, 4));
  EXPECT_EQ(Reader(one, given, 0, 9).Drain(),
            Reader(one, given, std::nullopt).Drain());
}

// Whatever is left of an iterator owns what it uses: the pipeline may go.
TEST(Iterator, GoesBeforeItsTasks) {
  for (int i = 0; i < 50; ++i) {
    TestEngine engine;
    Reader reader(engine,
                  Prefetch(Take(Map(Map(Range(100'000), Pair()), Identity(), 4),
                                90'000)));
    ASSERT_TRUE(reader.Try(10).ok());
  }
}

}  // namespace
}  // namespace penstock::engine_testing
