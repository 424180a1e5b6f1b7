// Pipelines with something wrong in them, and what has to be found and done.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/tuner/choose.h"
#include "penstock/tuner/diagnose.h"
#include "penstock/tuner/measured_testing.h"
#include "penstock/tuner/propose.h"
#include "penstock/tuner/what_if.h"

namespace penstock::tuner {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Choice ChoiceOf(const Model& model, const Budget& budget = {}) {
  absl::StatusOr<Choice> choice = Choose(model, budget);
  EXPECT_TRUE(choice.ok()) << choice.status();
  return *std::move(choice);
}

Diagnosis DiagnosisOf(const Model& model, const Budget& budget = {}) {
  absl::StatusOr<Diagnosis> diagnosis = Diagnose(model, budget);
  EXPECT_TRUE(diagnosis.ok()) << diagnosis.status();
  return *std::move(diagnosis);
}

const plan::NodeKnobs& KnobsOf(const Model& model, const Choice& choice,
                               const std::string& name) {
  return choice.knobs.nodes().at((*model.measured)[PlaceOf(model, name)].id);
}

int64_t TasksOf(const Model& model, const Choice& choice,
                const std::string& name) {
  return KnobsOf(model, choice, name).parallelism().value();
}

std::vector<std::string> TitlesOf(const Diagnosis& diagnosis) {
  std::vector<std::string> titles;
  for (const Fix& fix : diagnosis.fixes) titles.push_back(fix.title);
  return titles;
}

plan::FileCounts Files(uint64_t total, uint64_t opened, double bytes) {
  plan::FileCounts files;
  files.set_total(total);
  files.set_opened(opened);
  files.set_opened_bytes(bytes * static_cast<double>(opened));
  files.set_opened_bytes_squared(bytes * bytes * static_cast<double>(opened));
  return files;
}

// read -> decode -> augment -> batch(64), each row 1.5 ms.
TestRun Images() {
  TestRun run;
  TestNode read = Source(100e3);
  read.cardinality = 100'000;
  TestNode decode = Map("decode", 1e-3, 600e3);
  decode.cardinality = 100'000;
  TestNode augment = Map("augment", 0.5e-3, 600e3);
  augment.cardinality = 100'000;
  run.nodes = {read, decode, augment, Batch(64, 600e3 * 64)};
  run.consumer_seconds = 1e-3;
  run.consumer_wait_share = 0.9;
  run.cores = 8;
  run.rate = 1 / (64 * 1e-3);
  run.memory_bytes = 4e9;
  return run;
}

// Case 1.
TEST(Cases, NothingIsParallelAndNothingIsReady) {
  TestRun run = Images();
  run.output_rows = 0;
  const Model model = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(model, {.may_cache = false});
  EXPECT_TRUE(diagnosis.is_input_bound);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("waits 90 % of its time"));
  EXPECT_GE(diagnosis.choice.knobs.output_rows().value(), 2);

  // The best point of a grid over both maps.
  double best = 0;
  for (int64_t decode = 1; decode <= 8; ++decode) {
    for (int64_t augment = 1; augment <= 8; ++augment) {
      const absl::StatusOr<Bound> bound = WhatIf(
          model, {SetTasks{1, decode}, SetTasks{2, augment}, SetOutputRows{2}},
          KnobsAre::kInForce);
      ASSERT_TRUE(bound.ok());
      best = std::max(best, bound->rate.middle);
    }
  }
  EXPECT_GE(diagnosis.choice.bound.rate.middle, 0.95 * best);
  // 8 cores against one and a half.
  EXPECT_GT(best, 4 * run.rate);
  ASSERT_FALSE(diagnosis.fixes.empty());
  EXPECT_THAT(diagnosis.fixes[0].title, HasSubstr("parallelism of decode"));
}

TEST(Cases, ABudgetOfMoreCoresThanThereAreIsSaid) {
  Budget budget;
  budget.cores = 100'000;
  const Model model = ModelOf(Images());
  EXPECT_THAT(DiagnosisOf(model, budget).notes,
              Contains(HasSubstr("cpu is 100000, and there are 8 cores")));
  budget.cores = 8;
  EXPECT_THAT(DiagnosisOf(model, budget).notes,
              testing::Not(Contains(HasSubstr("cpu is"))));
}

// Case 2.
TEST(Cases, ManyMoreThreadsThanCores) {
  TestRun run = Images();
  run.cores = 2;
  run.nodes[1].parallelism = run.nodes[2].parallelism = 64;
  run.preemption = 64;
  run.rate = 2 / (64 * 1.5e-3);
  const Model model = ModelOf(run);
  const Choice choice = ChoiceOf(model, {.may_cache = false});
  EXPECT_LE(TasksOf(model, choice, "decode"), 2);
  EXPECT_LE(TasksOf(model, choice, "augment"), 2);
  EXPECT_GE(choice.bound.rate.middle, 0.95 * run.rate);
  EXPECT_LE(choice.cores, 2.01);
}

TEST(Cases, FunctionsWithThreadsOfTheirOwnGetFewerTasks) {
  TestRun run = Images();
  run.nodes[1].cores_per_task = 4;
  run.nodes[1].parallelism = 8;
  run.rate = 8 / (64 * 1.5e-3);
  run.preemption = 2;
  const Model model = ModelOf(run);
  EXPECT_LE(TasksOf(model, ChoiceOf(model, {.may_cache = false}), "decode"), 4);
}

// Case 3.
TEST(Cases, AHundredToOneBetweenTwoMaps) {
  TestRun run = Images();
  run.cores = 96;
  run.nodes[1].cpu_seconds = 10e-3;
  run.nodes[1].parallelism = 95;
  run.nodes[2].cpu_seconds = 0.1e-3;
  run.rate = 40;
  const Model model = ModelOf(run);
  const Choice choice = ChoiceOf(model, {.may_cache = false});
  EXPECT_GE(TasksOf(model, choice, "augment"), 2);
  EXPECT_GE(TasksOf(model, choice, "decode"), 40);
}

// Case 4.
TEST(Cases, OneSequentialNodeIsTheLimit) {
  TestRun run = Images();
  run.nodes[0].cpu_seconds = 5e-3;  // inflates one file
  run.nodes[1].parallelism = run.nodes[2].parallelism = 8;
  run.rate = 1 / (64 * 5e-3);
  const Model model = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(model, {.may_cache = false});
  EXPECT_EQ(diagnosis.wall.wall, Wall::kSequential);
  EXPECT_EQ(diagnosis.wall.node, PlaceOf(model, "read"));
  EXPECT_NEAR(diagnosis.possible.middle, run.rate, 0.05 * run.rate);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("more threads do not help"));
  EXPECT_THAT(TitlesOf(diagnosis), Contains(HasSubstr("shards")));
  // No threads for what cannot use them, and fewer for the others.
  EXPECT_FALSE(diagnosis.choice.knobs.nodes().contains(0));
  EXPECT_LE(TasksOf(model, diagnosis.choice, "decode"), 2);
}

TEST(Cases, ACacheAfterTheSequentialNodeHelps) {
  TestRun run = Images();
  run.memory_bytes = 16e9;  // 10 GB of records
  run.nodes[0].cpu_seconds = 5e-3;
  run.nodes[1].parallelism = run.nodes[2].parallelism = 8;
  run.rate = 1 / (64 * 5e-3);
  const Model model = ModelOf(run);
  const Choice choice = ChoiceOf(model);
  ASSERT_TRUE(choice.cache);
  EXPECT_EQ(choice.cache->node, PlaceOf(model, "read"));
  EXPECT_GT(choice.bound.rate.middle, 3 * run.rate);
}

// Case 5.
TEST(Cases, OneReadUnderWayAndEachTakesTwentyMilliseconds) {
  TestRun run = Images();
  run.nodes[0].read_seconds = 20e-3;
  run.nodes[0].read_bytes = 100e3;
  run.nodes[0].read_depth = 1;
  run.rate = 1 / (64 * 20e-3);
  const Model model = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(model, {.may_cache = false});
  EXPECT_EQ(diagnosis.wall.wall, Wall::kReadLatency);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("with 1 read under way"));
  const plan::NodeKnobs& knobs = KnobsOf(model, diagnosis.choice, "read");
  // To where the cores are the limit (8 cores / 1.5 ms, 20 ms each), no more.
  EXPECT_GE(knobs.read_depth().value(), 60);
  EXPECT_LE(knobs.read_depth().value(), kMaxReadDepth);
  EXPECT_GT(diagnosis.choice.bound.rate.low, 3 * run.rate);

  run.cores = 1;
  const Model slower = ModelOf(run);
  const Choice choice = ChoiceOf(slower, {.may_cache = false});
  EXPECT_LE(KnobsOf(slower, choice, "read").read_depth().value(), 18);
}

// Case 7.
TEST(Cases, TheDiskIsTheLimitAndCoresAreIdle) {
  TestRun run = Images();
  run.nodes[0].read_bytes = 100e3;
  run.nodes[0].cardinality.reset();
  run.nodes[1].cardinality.reset();
  run.nodes[2].cardinality.reset();
  run.nodes[2].is_random = true;
  run.nodes[0].files = Files(100, 10, 20e6);  // 2 GB of records
  run.nodes[1].parallelism = run.nodes[2].parallelism = 4;
  run.disk_bytes_per_second = 50e6;
  run.rate = 50e6 / (64 * 100e3);
  const Model model = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(model);
  EXPECT_EQ(diagnosis.wall.wall, Wall::kDiskBytes);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("the disk gives 50 MB/s"));
  ASSERT_TRUE(diagnosis.choice.cache);
  EXPECT_EQ(diagnosis.choice.cache->node, PlaceOf(model, "read"));
  EXPECT_EQ(diagnosis.choice.cache->cache->fraction, 1);
  EXPECT_NEAR(diagnosis.choice.cache->size_bytes, 2e9, 0.05e9);
  EXPECT_GT(diagnosis.fixes[0].expected.low, 2 * run.rate);

  // Without room, CPU knobs are not raised.
  run.memory_bytes = 200e6;
  const Model small = ModelOf(run);
  const Choice choice = ChoiceOf(small);
  EXPECT_LE(TasksOf(small, choice, "decode"), 4);
}

// Case 8.
TEST(Cases, WhatFillsACacheKeepsItsTasks) {
  TestRun run = Images();
  run.memory_bytes = 200e9;
  run.nodes[2].is_random = true;
  run.nodes[1].parallelism = run.nodes[2].parallelism = 1;
  run.rate = 1 / (64 * 1.5e-3);
  const Model model = ModelOf(run);
  const Choice choice = ChoiceOf(model);
  ASSERT_TRUE(choice.cache);
  const int decode = PlaceOf(model, "decode");
  EXPECT_EQ(choice.cache->node, decode);
  // The first epoch is decoded as fast as without a cache.
  const uint32_t id = (*model.measured)[decode].id;
  EXPECT_GE(choice.knobs.nodes().at(id).parallelism().value(), 4);
}

TEST(Cases, NoCacheAfterRandomAugmentation) {
  TestRun run = Images();
  run.memory_bytes = 200e9;
  run.nodes[2].is_random = true;
  run.nodes[1].parallelism = run.nodes[2].parallelism = 8;
  run.rate = 8 / (64 * 1.5e-3);
  const Model model = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(model);
  ASSERT_TRUE(diagnosis.choice.cache);
  EXPECT_EQ(diagnosis.choice.cache->node, PlaceOf(model, "decode"));
  EXPECT_THAT(diagnosis.notes,
              Contains(HasSubstr("augment gives other rows in every epoch")));

  // And one that is there is named.
  TestNode cache = Map("cache", 0, 600e3);
  cache.op = plan::Node::kCache;
  cache.cache = plan::CacheCounts();
  run.nodes.insert(run.nodes.begin() + 3, cache);
  EXPECT_THAT(DiagnosisOf(ModelOf(run)).notes,
              Contains(HasSubstr("cache keeps what was drawn once")));
}

// Case 9.
TEST(Cases, ACacheThatDoesNotFit) {
  TestRun run = Images();  // 60 GB decoded
  run.memory_bytes = 6e9;
  run.nodes[1].parallelism = run.nodes[2].parallelism = 8;
  run.rate = 8 / (64 * 1.5e-3);
  const Model model = ModelOf(run);
  const Choice choice = ChoiceOf(model);
  EXPECT_LE(choice.memory_bytes, 0.9 * run.memory_bytes);
  ASSERT_TRUE(choice.cache);
  EXPECT_LT(choice.cache->cache->fraction, 1);
  EXPECT_EQ(choice.cache->cache->tier, plan::MEMORY);

  // With a fast disk and leave to use it, all of them.
  run.disk_bytes_per_second = 8e9;
  run.disk_free_bytes = 500e9;
  const Model with_disk = ModelOf(run);
  const Choice other = ChoiceOf(with_disk, {.disk_bytes = 200e9});
  ASSERT_TRUE(other.cache);
  EXPECT_EQ(other.cache->cache->tier, plan::DISK);
  EXPECT_EQ(other.cache->cache->fraction, 1);
  EXPECT_GT(other.bound.rate.middle, choice.bound.rate.middle);
}

TestNode Ready(int64_t rows, double row_bytes) {
  TestNode prefetch = Map("prefetch", 1e-9, row_bytes, 1);
  prefetch.op = plan::Node::kPrefetch;
  prefetch.is_sequential = true;
  prefetch.rows_per_chunk = 1;
  prefetch.buffer_rows = rows;
  return prefetch;
}

// Also case 9: rows that are ready save waits, rows that are kept save work.
TEST(Cases, BuffersGiveWayToACacheThatDoesNotFit) {
  TestRun run = Images();
  run.cores = 2;
  run.memory_bytes = 1e9;
  for (int i = 0; i < 3; ++i) run.nodes[i].cardinality = 2000;  // 1.2 GB
  run.nodes.push_back(Ready(2, 600e3 * 64));
  // Some elements take long, so that more of them would be ready.
  run.nodes.back().slow_share = 0.05;
  run.nodes.back().slow_factor = 50;
  const Model model = ModelOf(run);
  const auto most =
      KnobsOf(model, ChoiceOf(model, {.may_cache = false}), "prefetch")
          .buffer_rows()
          .value();
  EXPECT_GE(most, 4);
  const Choice choice = ChoiceOf(model);
  ASSERT_TRUE(choice.cache);
  EXPECT_LT(KnobsOf(model, choice, "prefetch").buffer_rows().value(), most);
  EXPECT_FALSE(choice.is_over_memory);

  // Not for next to nothing.
  TestRun small = run;
  small.nodes.back().row_bytes = 1000;
  const Model other = ModelOf(small);
  const Choice same = ChoiceOf(other);
  ASSERT_TRUE(same.cache);
  EXPECT_LT(same.cache->cache->fraction, 1);
  EXPECT_GE(KnobsOf(other, same, "prefetch").buffer_rows().value(), most);

  run.nodes.back().chosen_by = plan::USER;  // as many as there were
  run.nodes.back().buffer_rows = most;
  const Choice pinned = ChoiceOf(ModelOf(run));
  ASSERT_TRUE(pinned.cache);
  EXPECT_LT(pinned.cache->cache->fraction,
            choice.cache->cache->fraction - 2 * 600e3 * 64 / 1.2e9);
}

// Large rows that go by fast are taken while the processor has them still.
TEST(Cases, FastLargeRowsAreNotHeldInMany) {
  const auto rows_ready = [](double row_seconds, double row_bytes = 5e6) {
    TestRun run;
    TestNode work = Map("work", row_seconds, row_bytes, 1);
    work.rows_per_chunk = 1;
    run.nodes = {Source(1000, 1), work, Ready(2, row_bytes)};
    run.nodes.back().slow_share = 0.05;
    run.nodes.back().slow_factor = 50;
    run.rate = 1 / row_seconds;
    const Model model = ModelOf(run);
    return KnobsOf(model, ChoiceOf(model, {.may_cache = false}), "prefetch")
        .buffer_rows()
        .value();
  };
  EXPECT_LE(rows_ready(1e-3), 3);  // 5 GB/s
  EXPECT_GE(rows_ready(1e-1), 4);
  // Of smaller ones that need many, so many as are near a core.
  EXPECT_EQ(rows_ready(20e-6, 250e3), 16);
}

// Case 10.
TEST(Cases, RecordsAreCachedButDecodingIsTheWall) {
  TestRun run = Images();
  run.memory_bytes = 100e9;
  run.resident_bytes = 11e9;
  TestNode cache = Map("cache", 1e-6, 100e3);
  cache.op = plan::Node::kCache;
  cache.is_sequential = true;
  cache.cache = plan::CacheCounts();
  cache.cache->set_is_complete(true);
  run.nodes.insert(run.nodes.begin() + 1, cache);
  run.nodes[2].parallelism = run.nodes[3].parallelism = 8;
  run.nodes[3].is_random = true;
  run.rate = 8 / (64 * 1.5e-3);
  const Model model = ModelOf(run);
  EXPECT_TRUE(model.nodes[0].is_cached);
  EXPECT_EQ(model.nodes[0].cpu.value, 0);
  const Choice choice = ChoiceOf(model);
  ASSERT_TRUE(choice.cache);
  EXPECT_EQ(choice.cache->node, PlaceOf(model, "decode"));
  EXPECT_GT(choice.bound.rate.middle, 2 * run.rate);
}

// Case 12.
TEST(Cases, NoEndlessAndNoTruncatedCache) {
  TestRun run = Images();
  run.memory_bytes = 200e9;
  TestNode repeat = Map("repeat", 1e-9, 600e3);
  repeat.op = plan::Node::kRepeat;
  repeat.is_infinite = true;
  repeat.is_sequential = true;
  TestNode cache = Map("cache", 1e-9, 600e3);
  cache.op = plan::Node::kCache;
  cache.is_sequential = true;
  cache.cache = plan::CacheCounts();
  run.nodes.insert(run.nodes.begin() + 3, {repeat, cache});
  Diagnosis diagnosis = DiagnosisOf(ModelOf(run));
  EXPECT_THAT(diagnosis.notes, Contains(HasSubstr("cache before it")));
  ASSERT_TRUE(diagnosis.choice.cache);
  EXPECT_EQ(diagnosis.choice.cache->node, 2);  // augment, below the repeat

  run.nodes[3].op = plan::Node::kCache;
  run.nodes[3].name = "cache";
  run.nodes[3].cache = plan::CacheCounts();
  run.nodes[4] = Map("take", 1e-9, 600e3);
  run.nodes[4].op = plan::Node::kTake;
  run.nodes[4].is_sequential = true;
  diagnosis = DiagnosisOf(ModelOf(run));
  EXPECT_THAT(diagnosis.notes,
              Contains(HasSubstr("take ends before its input does")));
  for (const CacheCandidate& candidate : diagnosis.choice.candidates) {
    EXPECT_FALSE(candidate.is_legal && candidate.node < 4);
  }
}

// Case 16.
TEST(Cases, SlowRowsHoldUpAnOrderedWindow) {
  TestRun run = Images();
  TestNode& decode = run.nodes[1];
  decode.slow_share = 0.01;
  decode.slow_factor = 50;
  decode.parallelism = 8;
  decode.rows_per_chunk = 1;
  decode.reorder_rows = 16;
  run.nodes[2].cpu_seconds = 1e-6;
  const double alone = 8 / (64 * 1e-3);
  run.rate = 0.4 * alone;
  const Model model = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(model, {.may_cache = false});
  EXPECT_EQ(diagnosis.wall.wall, Wall::kReorder);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("ordered window of decode"));
  const int64_t window =
      KnobsOf(model, diagnosis.choice, "decode").reorder_rows().value();
  EXPECT_GT(window, 64);
  EXPECT_GT(diagnosis.choice.bound.rate.middle,
            1.5 * diagnosis.possible.middle);
}

// Case 18.
TEST(Cases, AThousandHugeBatchesAreKeptReady) {
  TestRun run = Images();
  run.nodes.push_back(Ready(1024, 600e3 * 64));
  run.resident_bytes = 3e9;
  const Model model = ModelOf(run);
  const Choice choice = ChoiceOf(model, {.may_cache = false});
  EXPECT_LE(KnobsOf(model, choice, "prefetch").buffer_rows().value(), 8);
  EXPECT_LE(choice.memory_bytes, 0.9 * run.memory_bytes);

  // The user's own number stays, with advice.
  run.nodes.back().chosen_by = plan::USER;
  const Model pinned = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(pinned, {.may_cache = false});
  EXPECT_EQ(KnobsOf(pinned, diagnosis.choice, "prefetch").buffer_rows().value(),
            1024);
  EXPECT_THAT(TitlesOf(diagnosis),
              Contains(HasSubstr("set buffer_rows of prefetch")));
}

// Case 19.
TEST(Cases, ABurstyConsumerAndNothingReady) {
  TestRun run = Images();
  run.nodes[1].parallelism = run.nodes[2].parallelism = 8;
  run.output_rows = 0;
  run.rate = 40;
  run.consumer_seconds = 1 / 75.0;
  run.consumer_cv = 2;
  const Model model = ModelOf(run);
  const int64_t bursty =
      ChoiceOf(model, {.may_cache = false}).knobs.output_rows().value();
  run.consumer_cv = 0;
  const Model steady = ModelOf(run);
  const int64_t even =
      ChoiceOf(steady, {.may_cache = false}).knobs.output_rows().value();
  EXPECT_GT(bursty, 10);
  EXPECT_LE(even, 4);
  EXPECT_EQ(DiagnosisOf(model, {.may_cache = false}).wall.wall,
            Wall::kNoOverlap);
}

// Case 19, while it runs: nobody said how much is ready, and it is too little.
TEST(Cases, ABurstyConsumerThatWaitsIsGivenMore) {
  TestRun run = Images();
  run.nodes[1].parallelism = run.nodes[2].parallelism = 8;
  run.rate = 28;
  run.consumer_seconds = 1 / 32.0;
  run.consumer_cv = std::sqrt(7);
  run.consumer_wait_share = 0.1;
  const auto proposed = [&run] {
    const Model model = ModelOf(run);
    std::vector<std::string> trials;
    for (const Proposal& each :
         Propose(model, ChoiceOf(model, {.may_cache = false}), {})) {
      if (each.family != KnobKind::kOutputRows) continue;
      trials.push_back(absl::StrCat(each.from, " to ", each.to));
    }
    return trials;
  };
  EXPECT_THAT(proposed(), ElementsAre("unset to 8"));
  run.consumer_wait_share = 0.01;
  run.rate = 31.7;
  EXPECT_THAT(proposed(), IsEmpty());
}

// Case 20.
TEST(Cases, PythonThatGetsOneCoreWhateverItsTasks) {
  TestRun run = Images();
  run.nodes[1].is_python = true;
  run.nodes[1].parallelism = 8;
  run.nodes[1].is_serialized = true;
  run.rate = 1 / (64 * 1e-3);
  const Model model = ModelOf(run);
  EXPECT_TRUE(model.nodes[1].is_serialized);
  const Diagnosis diagnosis = DiagnosisOf(model);
  EXPECT_EQ(diagnosis.wall.wall, Wall::kSerialized);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("use one core between them"));
  EXPECT_THAT(TitlesOf(diagnosis), Contains(HasSubstr("native functions")));
  EXPECT_EQ(TasksOf(model, diagnosis.choice, "decode"), 1);
  EXPECT_FALSE(diagnosis.choice.cache &&
               diagnosis.choice.cache->node >= PlaceOf(model, "decode"));
}

// Case 24.
TEST(Cases, TheConsumerIsSlowerThanThePipeline) {
  TestRun run = Images();
  run.memory_bytes = 200e9;
  run.nodes[1].parallelism = run.nodes[2].parallelism = 8;
  run.consumer_seconds = 0.2;
  run.consumer_wait_share = 0.001;
  run.rate = 5;
  const Model model = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(model);
  EXPECT_FALSE(diagnosis.is_input_bound);
  EXPECT_EQ(diagnosis.wall.wall, Wall::kConsumer);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("the pipeline keeps up"));
  EXPECT_FALSE(diagnosis.choice.cache);
  EXPECT_TRUE(diagnosis.fixes.empty()) << diagnosis.fixes[0].title;
  // 5/s of 96 ms each is half a core.
  EXPECT_LT(diagnosis.choice.cores, 0.6);
  EXPECT_LE(TasksOf(model, diagnosis.choice, "decode"), 2);
}

// Case 25.
TEST(Cases, TheQuotaIsLessThanTheMachine) {
  TestRun run = Images();
  run.cores = 1;
  run.memory_bytes = 2.1e9;
  run.nodes[1].parallelism = run.nodes[2].parallelism = 2;
  run.preemption = 2;
  run.rate = 1 / (64 * 1.5e-3);
  const Model model = ModelOf(run);
  const Choice choice = ChoiceOf(model);
  EXPECT_EQ(TasksOf(model, choice, "decode"), 1);
  EXPECT_EQ(TasksOf(model, choice, "augment"), 1);
  EXPECT_LE(choice.memory_bytes, 0.9 * run.memory_bytes);
  const Choice less = ChoiceOf(model, {.cores = 0.5, .memory_bytes = 500e6});
  EXPECT_LE(less.cores, 0.51);
  EXPECT_LE(less.memory_bytes, 500e6);
}

// Cases 15 and 30, as far as the model goes.
TEST(Cases, TinyRowsHandedOverOneByOne) {
  TestRun run;
  TestNode split = Map("split", 1e-6, 100);
  split.parallelism = 2;
  split.rows_per_chunk = 1;
  TestNode look_up = Map("look_up", 1e-6, 100);
  look_up.parallelism = 2;
  look_up.rows_per_chunk = 1;
  run.nodes = {Source(100), split, look_up, Batch(64, 6400)};
  run.unattributed_seconds = 2 * 64 * 10e-6;
  run.has_stages = false;
  run.rate = 2 / (64 * 23e-6);
  const Model model = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(model, {.may_cache = false});
  EXPECT_EQ(diagnosis.wall.wall, Wall::kCores);
  // One task runs them all: 3 us a row instead of 23 on two.
  EXPECT_GT(diagnosis.choice.bound.rate.middle, 3.5 * run.rate);
  EXPECT_EQ(TasksOf(model, diagnosis.choice, "split"), 1);
  EXPECT_THAT(TitlesOf(diagnosis), Contains(HasSubstr("batch before")));
}

TEST(Cases, CheapNodesAreTooMuchForOneTaskTogether) {
  TestRun run;
  run.nodes = {Source(100)};
  for (const char* name : {"a", "b", "c", "d"}) {
    run.nodes.push_back(Map(name, 20e-6, 100));
    run.nodes.back().rows_per_chunk = 4;  // 80 us: not worth it, each alone
  }
  run.nodes.push_back(Batch(64, 6400));
  run.has_stages = false;
  run.cores = 8;
  run.rate = 1 / (64 * 81e-6);
  const Model model = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(model, {.may_cache = false});
  EXPECT_EQ(diagnosis.wall.wall, Wall::kStage);
  EXPECT_NEAR(diagnosis.possible.middle, run.rate, 0.05 * run.rate);
  EXPECT_GT(diagnosis.choice.bound.rate.middle, 2 * run.rate);
}

TEST(Cases, DatasetsInsideAnInterleaveShareItsTasks) {
  TestRun run = Images();
  TestNode files = Source(100, 0.1);
  files.name = "files";
  files.op = plan::Node::kListFiles;
  TestNode read = Source(100e3);
  read.cpu_seconds = 1e-3;
  read.inside = 2;
  TestNode interleave = Map("interleave", 1e-6, 100e3);
  interleave.op = plan::Node::kInterleave;
  interleave.inputs = std::vector<uint32_t>{0};
  interleave.parallelism = 2;
  run.nodes = {files, read, interleave, Batch(64, 6.4e6)};
  run.rate = 2 / (64 * 1e-3);
  const Model model = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(model, {.may_cache = false});
  EXPECT_NEAR(diagnosis.possible.middle, run.rate, 0.1 * run.rate);
  EXPECT_GE(TasksOf(model, diagnosis.choice, "interleave"), 6);
  EXPECT_GT(diagnosis.choice.bound.rate.middle, 2.5 * run.rate);
}

// Tasks that wait for cores which other processes have.
TestRun Crowded() {
  TestRun run = Images();
  run.cores = 2;
  run.nodes[1].parallelism = run.nodes[2].parallelism = 2;
  run.rate = 0.6 / (64 * 1.5e-3);
  run.preemption = 3;
  return run;
}

TEST(Cases, OthersHaveTheCores) {
  TestRun run = Crowded();
  run.other_cores = 1.4;
  const Model model = ModelOf(run);
  EXPECT_NEAR(model.other_cores, 1.4, 0.05);
  const Diagnosis diagnosis = DiagnosisOf(model, {.may_cache = false});
  EXPECT_THAT(diagnosis.sentence,
              HasSubstr("other processes use 1.4 of 2 cores; without them"));
  EXPECT_EQ(diagnosis.wall.wall, Wall::kCores)
      << "what it would run into without them; not its tasks";
  EXPECT_THAT(TitlesOf(diagnosis),
              Contains(HasSubstr("the 1.4 cores that other processes use")));
  EXPECT_THAT(TitlesOf(diagnosis),
              testing::Not(Contains(HasSubstr("instead of"))));
}

// A little beside it is not in its way.
TEST(Cases, OthersTakeALittle) {
  TestRun run = Crowded();
  run.rate = 1.9 / (64 * 1.5e-3);
  run.preemption = 1.1;
  run.other_cores = 0.1;
  const Diagnosis diagnosis = DiagnosisOf(ModelOf(run), {.may_cache = false});
  EXPECT_THAT(diagnosis.sentence, HasSubstr("all cores are in use"));
}

TEST(Cases, CoresThatNobodyUsesAreNotSaidToBeInUse) {
  TestRun run = Crowded();
  run.preemption = 1;
  const Diagnosis diagnosis = DiagnosisOf(ModelOf(run), {.may_cache = false});
  EXPECT_THAT(diagnosis.sentence,
              testing::Not(HasSubstr("all cores are in use")));
}

// Counters err; what was seen was possible, and no share is above its limit.
TEST(Cases, NothingIsUsedBeyondWhatThereIs) {
  TestRun run = Images();
  run.rate = 1.3 / (64 * 1e-3);
  const Diagnosis diagnosis = DiagnosisOf(ModelOf(run), {.may_cache = false});
  for (const Evidence& line : diagnosis.evidence) {
    EXPECT_LE(line.used, line.capacity) << line.what;
    EXPECT_GE(line.rate, diagnosis.measured) << line.what;
  }
  EXPECT_GE(diagnosis.possible.middle, diagnosis.measured);
}

// Others have the cores, and a function that sleeps does not need them.
TEST(Cases, AFunctionThatSleepsIsNotHeldUpByOthers) {
  TestRun run;
  TestNode ask = Map("ask", 0.1e-3);
  ask.is_python = true;
  ask.cores_per_task = 0.01;  // 10 ms, of which 0.1 on a core
  run.nodes = {Source(), ask, Batch(64)};
  run.rate = 1 / 0.64;
  run.other_cores = 1.9;
  run.consumer_seconds = 1e-3;
  run.consumer_wait_share = 0.9;
  const Diagnosis diagnosis = DiagnosisOf(ModelOf(run), {.may_cache = false});
  EXPECT_NEAR(diagnosis.possible.middle, run.rate, 0.1 * run.rate);
  EXPECT_THAT(diagnosis.sentence,
              testing::Not(HasSubstr("other processes use")));
  EXPECT_THAT(diagnosis.sentence, HasSubstr("ask"));
  // Many can wait at once.
  const auto more = std::find_if(
      diagnosis.fixes.begin(), diagnosis.fixes.end(), [](const Fix& fix) {
        return fix.title ==
               "set num_parallel_calls=32 of ask (train.py:2), with "
               "Options(python=PythonOptions(processes=32))";
      });
  ASSERT_NE(more, diagnosis.fixes.end());
  EXPECT_GT(more->expected.middle, 8 * run.rate);
}

// Cores that were not used are not "all in use".
TEST(Cases, CoresThatAreIdleAreNoReasonForMore) {
  TestRun run = Images();
  run.cores = 2;
  run.nodes[1].parallelism = run.nodes[2].parallelism = 8;
  run.rate = 0.6 / (64 * 1.5e-3);  // 0.6 cores, whatever else holds it up
  for (const std::string& title : TitlesOf(DiagnosisOf(ModelOf(run)))) {
    EXPECT_THAT(title, testing::Not(HasSubstr("cores instead of")));
  }
}

// What workers compute is on none of the nodes here.
TestRun Distributed(double wait_input_share) {
  TestRun run;
  TestNode received = Source(1000);
  received.name = "distribute_1";
  received.op = plan::Node::kReceived;
  received.wait_input_share = wait_input_share;
  run.nodes = {received, Batch(64)};
  run.consumer_seconds = 1e-6;
  run.consumer_wait_share = 0.99;
  run.cores = 2;
  run.rate = 100;
  run.other_cores = 1.9;
  return run;
}

TEST(Cases, WorkersThatAreWaitedForAreTheWall) {
  const Diagnosis diagnosis = DiagnosisOf(ModelOf(Distributed(0.9)));
  EXPECT_EQ(diagnosis.wall.wall, Wall::kWorkers);
  EXPECT_THAT(diagnosis.sentence,
              HasSubstr("distribute_1 (train.py:1) waits for the workers"));
  EXPECT_NEAR(diagnosis.possible.middle, 100, 1);
  EXPECT_GT(diagnosis.next_wall_gain, 0.1);
  EXPECT_THAT(TitlesOf(diagnosis),
              Contains(HasSubstr("twice as many workers")));
  EXPECT_THAT(TitlesOf(diagnosis),
              testing::Not(Contains(HasSubstr("cores instead of"))));
}

TEST(Cases, WorkersThatKeepUpAreNot) {
  const Diagnosis diagnosis = DiagnosisOf(ModelOf(Distributed(0.02)));
  EXPECT_NE(diagnosis.wall.wall, Wall::kWorkers);
  EXPECT_THAT(TitlesOf(diagnosis),
              testing::Not(Contains(HasSubstr("workers"))));
}

}  // namespace
}  // namespace penstock::tuner
