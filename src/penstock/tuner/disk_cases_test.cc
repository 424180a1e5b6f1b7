// Pipelines on storage that is slow in one way, and what has to be found.
#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/tuner/choose.h"
#include "penstock/tuner/diagnose.h"
#include "penstock/tuner/measured_testing.h"
#include "penstock/tuner/what_if.h"

namespace penstock::tuner {
namespace {

using testing::HasSubstr;

constexpr double kRead = 256 << 10;

// read -> decode -> batch(64): each row is a read of 256 KiB. The rate is what
// the disk gives to as many reads as there are.
TestRun Files(const DiskLaw& disk, int64_t sources, int64_t depth) {
  TestRun run;
  TestNode read = Source(kRead);
  read.cardinality = 100'000;
  read.read_bytes = kRead;
  read.read_sources = sources;
  read.read_depth = sources * depth;
  TestNode decode = Map("decode", 10e-6, kRead);
  decode.cardinality = 100'000;
  decode.parallelism = 2;
  run.nodes = {read, decode, Batch(64, kRead * 64)};
  run.cores = 8;
  run.disk = disk;
  const auto reads = static_cast<double>(sources * depth);
  const double rate =
      BytesPerSecond(disk, reads, kRead, static_cast<double>(sources)) / kRead;
  run.rate = rate / 64;
  run.nodes[0].read_seconds = reads / rate;  // Little's law
  return run;
}

Diagnosis DiagnosisOf(const Model& model, const Budget& budget) {
  absl::StatusOr<Diagnosis> diagnosis = Diagnose(model, budget);
  EXPECT_TRUE(diagnosis.ok()) << diagnosis.status();
  return *std::move(diagnosis);
}

const plan::NodeKnobs& KnobsOf(const Model& model, const Choice& choice,
                               const std::string& name) {
  return choice.knobs.nodes().at((*model.measured)[PlaceOf(model, name)].id);
}

constexpr DiskLaw kFar = {.peak = 300e6, .latency = 20e-3};
constexpr DiskLaw kNarrow = {.peak = 60e6, .latency = 0.2e-3};
constexpr DiskLaw kHead = {.peak = 150e6, .seek = 8e-3};

// Case 5.
TEST(DiskCases, LatencyIsOvercomeByReadsUpToTheKnee) {
  const TestRun run = Files(kFar, 1, 4);
  const Model model = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(model, {.may_cache = false});
  EXPECT_EQ(diagnosis.wall.wall, Wall::kReadLatency);
  EXPECT_EQ(diagnosis.next_wall.wall, Wall::kDiskBytes);
  EXPECT_NEAR(diagnosis.possible.middle, run.rate, 0.1 * run.rate);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("with 4 reads under way of"));
  const double knee = KneeOf(kFar, kRead, 1);
  const auto reads = static_cast<double>(
      KnobsOf(model, diagnosis.choice, "read").read_depth().value());
  EXPECT_GE(reads, knee);
  EXPECT_LE(reads, 1.3 * knee);
  EXPECT_NEAR(diagnosis.choice.bound.rate.middle, 300e6 / (64 * kRead),
              0.05 * 300e6 / (64 * kRead));
}

TEST(DiskCases, ReadsAreSharedByTheFilesThatAreOpen) {
  const Model model = ModelOf(Files(kFar, 8, 1));
  const absl::StatusOr<Choice> choice = Choose(model, {.may_cache = false});
  ASSERT_TRUE(choice.ok());
  const double knee = KneeOf(kFar, kRead, 8);
  const auto each =
      static_cast<double>(KnobsOf(model, *choice, "read").read_depth().value());
  EXPECT_GE(8 * each, knee);
  EXPECT_LE(8 * (each - 1), 1.3 * knee);
}

// Case 6.
TEST(DiskCases, WhereTheHeadSeeksReadsAreLargerAndFewer) {
  const TestRun run = Files(kHead, 32, 2);
  const Model model = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(model, {.may_cache = false});
  EXPECT_EQ(diagnosis.wall.wall, Wall::kDiskSeeks);
  EXPECT_THAT(diagnosis.sentence,
              HasSubstr("from one file to another, which takes 8 ms"));
  EXPECT_NEAR(diagnosis.possible.middle, run.rate, 0.1 * run.rate);
  const plan::NodeKnobs& knobs = KnobsOf(model, diagnosis.choice, "read");
  EXPECT_EQ(knobs.read_depth().value(), 1);
  EXPECT_GE(knobs.read_bytes().value(), 2 << 20);
  EXPECT_GT(diagnosis.choice.bound.rate.low, 2.5 * run.rate);
  // No more than memory allows.
  const absl::StatusOr<Choice> small =
      Choose(model, {.memory_bytes = 400e6, .may_cache = false});
  ASSERT_TRUE(small.ok());
  EXPECT_LE(KnobsOf(model, *small, "read").read_bytes().value(), 2 << 20);
}

TEST(DiskCases, OneFileDoesNotSeek) {
  const Model model = ModelOf(Files(kHead, 1, 2));
  const Bound bound = FindBound(model, KnobsAre::kInForce);
  EXPECT_NE(bound.wall().wall, Wall::kDiskSeeks);
  EXPECT_NEAR(bound.rate.middle, 150e6 / (64 * kRead),
              0.1 * 150e6 / (64 * kRead));
}

// Case 7.
TEST(DiskCases, WhereBandwidthIsTheWallNoKnobIsRaised) {
  const TestRun run = Files(kNarrow, 8, 4);
  const Model model = ModelOf(run);
  const Diagnosis diagnosis = DiagnosisOf(model, {.may_cache = false});
  EXPECT_EQ(diagnosis.wall.wall, Wall::kDiskBytes);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("the disk gives 60 MB/s"));
  EXPECT_LE(KnobsOf(model, diagnosis.choice, "decode").parallelism().value(),
            2);
  EXPECT_FALSE(diagnosis.choice.knobs.nodes().contains(
      (*model.measured)[PlaceOf(model, "read")].id));
  EXPECT_LE(diagnosis.possible.low, run.rate);
  EXPECT_GE(diagnosis.possible.high, run.rate);
  EXPECT_LE(diagnosis.possible.high, 1.2 * run.rate);
}

TEST(DiskCases, TheSourceIsKeptInMemoryWhollyOrInPart) {
  const TestRun run = Files(kNarrow, 8, 4);  // 26 GB of rows
  const Model model = ModelOf(run);
  const absl::StatusOr<Choice> part = Choose(model, {.memory_bytes = 10e9});
  ASSERT_TRUE(part.ok());
  ASSERT_TRUE(part->cache);
  EXPECT_LT(part->cache->cache->fraction, 0.5);
  EXPECT_GT(part->bound.rate.middle, 1.3 * run.rate);
}

TEST(DiskCases, TwiceTheDiskIsTwiceTheRateUntilTheNextWall) {
  const TestRun run = Files(kNarrow, 8, 4);
  const Model model = ModelOf(run);
  const absl::StatusOr<Bound> twice =
      WhatIf(model, {ScaleDisk{2}}, KnobsAre::kFree);
  ASSERT_TRUE(twice.ok());
  EXPECT_NEAR(twice->rate.middle, 2 * run.rate, 0.1 * run.rate);
  const absl::StatusOr<Bound> endless =
      WhatIf(model, {ScaleDisk{1e6}}, KnobsAre::kFree);
  ASSERT_TRUE(endless.ok());
  EXPECT_NE(endless->wall().wall, Wall::kDiskBytes);
}

TEST(DiskCases, ADiskThatWasKeptBusyGivesWhatWasSeen) {
  TestRun run = Files(kNarrow, 8, 4);
  run.disk->peak = 80e6;  // as measured alone, on a better day
  const Bound bound = FindBound(ModelOf(run), KnobsAre::kInForce);
  EXPECT_NEAR(bound.rate.middle, run.rate, 0.05 * run.rate);
}

// read -> decode, costly and large -> batch; nothing fits in memory.
TestRun Kept(double kept_bytes_per_second) {
  TestRun run = Files(kNarrow, 8, 4);
  run.nodes[0].read_bytes = run.nodes[0].read_seconds = 0;
  run.nodes[1].cpu_seconds = 4e-3;
  run.nodes[1].parallelism = 8;
  run.rate = 8 / (64 * 4e-3);
  run.kept_bytes_per_second = kept_bytes_per_second;
  run.disk_free_bytes = 200e9;
  run.memory_bytes = 12e9;
  return run;
}

TEST(DiskCases, RowsAreKeptOnDiskWhereThatIsFaster) {
  const TestRun run = Kept(2e9);
  const absl::StatusOr<Choice> choice =
      Choose(ModelOf(run), {.may_cache_in_memory = false});
  ASSERT_TRUE(choice.ok());
  ASSERT_TRUE(choice->cache);
  EXPECT_EQ(choice->cache->cache->tier, plan::DISK);
  EXPECT_EQ(choice->cache->cache->fraction, 1);
  EXPECT_GT(choice->bound.rate.middle, 2 * run.rate);
  // Never above a limit.
  const absl::StatusOr<Choice> less =
      Choose(ModelOf(run), {.disk_bytes = 5e9, .may_cache_in_memory = false});
  ASSERT_TRUE(less.ok());
  if (less->cache) {
    EXPECT_LE(less->cache->cache->fraction * less->cache->size_bytes, 5e9);
  }
}

// Case 11.
TEST(DiskCases, NoRowsAreKeptWhereReadingBackIsSlower) {
  const TestRun run = Kept(100e6);  // 8 cores decode 500 MB/s
  const absl::StatusOr<Choice> choice =
      Choose(ModelOf(run), {.may_cache_in_memory = false});
  ASSERT_TRUE(choice.ok());
  EXPECT_FALSE(choice->cache);
}

TEST(DiskCases, PartInMemoryAndTheRestOnDisk) {
  TestRun run = Kept(1e9);
  run.nodes.insert(run.nodes.begin() + 2, Map("grow", 1e-3, 2 * kRead));
  run.nodes[2].cardinality = 100'000;
  run.nodes[2].parallelism = 8;
  run.nodes[3] = Batch(64, 2 * kRead * 64);
  run.rate = 8 / (64 * 5e-3);
  const Model model = ModelOf(run);
  const absl::StatusOr<Choice> choice = Choose(model, {});
  ASSERT_TRUE(choice.ok());
  ASSERT_TRUE(choice->cache);
  ASSERT_TRUE(choice->second_cache);
  EXPECT_EQ(choice->cache->cache->tier, plan::MEMORY);
  EXPECT_EQ(choice->second_cache->cache->tier, plan::DISK);
  EXPECT_LT(choice->second_cache->node, choice->cache->node);
  for (const auto* each : {&choice->cache, &choice->second_cache}) {
    EXPECT_TRUE(choice->knobs.nodes()
                    .at((*model.measured)[(*each)->node].id)
                    .has_cache());
  }
  EXPECT_LE(choice->memory_bytes, 0.9 * run.memory_bytes);
}

TEST(DiskCases, MemoryIsNamedWhereItIsNear) {
  TestRun run;
  TestNode copy = Map("copy", 1e-3, 10e6);
  copy.parallelism = 8;
  run.nodes = {Source(10e6), copy, Batch(64, 640e6)};
  run.cores = 8;
  run.rate = 8 / (64 * 1e-3) / 8;
  run.memory_bytes_per_second = 12e9;
  const Bound bound = FindBound(ModelOf(run), KnobsAre::kInForce);
  EXPECT_TRUE(std::any_of(
      bound.limits.begin(), bound.limits.end(),
      [](const Limit& each) { return each.wall == Wall::kMemoryBytes; }));
  run.memory_bytes_per_second = 1e15;
  const Bound far = FindBound(ModelOf(run), KnobsAre::kInForce);
  EXPECT_TRUE(std::none_of(
      far.limits.begin(), far.limits.end(),
      [](const Limit& each) { return each.wall == Wall::kMemoryBytes; }));
}

// Case 11.
TEST(DiskCases, RowsThatComeBackMoreSlowlyThanTheyAreComputedAreNotKept) {
  TestRun run;
  TestNode read = Source(kRead / 8);
  TestNode decode = Map("decode", 1e-3, kRead);
  TestNode batch = Batch(64, kRead * 64);
  read.cardinality = decode.cardinality = 64'000;
  batch.cardinality = 1000;
  run.nodes = {read, decode, batch};
  run.rate = 1 / 64e-3;
  run.kept_bytes_per_second = 20e6;
  run.disk_free_bytes = 1e12;
  const Budget budget = {.disk_bytes = 1e12, .may_cache_in_memory = false};
  const Diagnosis slow = DiagnosisOf(ModelOf(run), budget);
  EXPECT_FALSE(slow.choice.cache);
  EXPECT_THAT(slow.notes,
              testing::Contains(HasSubstr(
                  "rows of batch are not kept on disk: read back at 20 MB/s "
                  "they would allow 1.192/s; without that")));
  run.kept_bytes_per_second = 2e9;
  const Diagnosis fast = DiagnosisOf(ModelOf(run), budget);
  ASSERT_TRUE(fast.choice.cache);
  EXPECT_EQ(fast.choice.cache->cache->tier, plan::DISK);
  EXPECT_THAT(fast.notes,
              testing::Not(testing::Contains(HasSubstr("not kept on disk"))));
}

}  // namespace
}  // namespace penstock::tuner
