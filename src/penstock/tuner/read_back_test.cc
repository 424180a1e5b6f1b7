#include "penstock/tuner/read_back.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/tuner/diagnose.h"
#include "penstock/tuner/measured_testing.h"
#include "penstock/tuner/report.h"

namespace penstock::tuner {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr double kRow = 256 << 10;
constexpr DiskLaw kSlow = {.peak = 20e6, .latency = 0.2e-3};

// files -> decode -> cache(file) -> batch(64), of which the file is there: its
// rows, of 256 KiB, come back from a disk of 20 MB/s, and nothing else is run.
TestRun ReadsItsFileBack() {
  TestRun run;
  TestNode files = Source(kRow / 8);
  files.name = "files";
  TestNode decode = Map("decode", 1e-3, kRow);
  files.visits = decode.visits = 0;
  TestNode read = Source(kRow);
  read.name = "cache/read";
  read.read_bytes = kRow;
  read.read_depth = 4;
  read.inside = 4;
  TestNode rows = Map("cache/rows", 1e-6, kRow);
  rows.op = plan::Node::kFlatMap;
  rows.is_sequential = true;
  rows.inside = 4;
  TestNode cache = Map("cache", 1e-6, kRow);
  cache.op = plan::Node::kCache;
  cache.is_sequential = true;
  cache.inputs = {1};
  cache.cache.emplace().set_hits(1);
  cache.cache->set_is_complete(true);
  run.nodes = {files, decode, read, rows, cache, Batch(64, kRow * 64)};
  run.disk = kSlow;
  run.rate = kSlow.peak / kRow / 64;
  run.nodes[2].read_seconds = 4 / (64 * run.rate);  // Little's law
  run.consumer_seconds = 1e-3;
  run.consumer_wait_share = 0.9;
  return run;
}

Diagnosis DiagnosisOf(const TestRun& run) {
  absl::StatusOr<Diagnosis> diagnosis = Diagnose(ModelOf(run));
  EXPECT_TRUE(diagnosis.ok()) << diagnosis.status();
  return *std::move(diagnosis);
}

plan::Report ReportOf(const TestRun& run) {
  const absl::StatusOr<plan::Report> report = MakeReport(SnapshotsOf(run), {});
  EXPECT_TRUE(report.ok()) << report.status();
  return *report;
}

// Case 11.
TEST(ReadBack, NamesTheCacheWhoseFileIsTheWall) {
  const TestRun run = ReadsItsFileBack();
  const Diagnosis diagnosis = DiagnosisOf(run);
  EXPECT_EQ(diagnosis.wall.wall, Wall::kDiskBytes);
  EXPECT_NEAR(diagnosis.possible.middle, run.rate, 0.1 * run.rate);
  EXPECT_THAT(diagnosis.sentence,
              HasSubstr("cache (train.py:5) reads its rows back from its file: "
                        "the disk gives 20 MB/s"));
  std::vector<std::string> titles;
  for (const Fix& fix : diagnosis.fixes) titles.push_back(fix.title);
  EXPECT_THAT(titles, Contains("put the file of cache (train.py:5) on a disk "
                               "that is twice as fast"));
  EXPECT_THAT(diagnosis.notes, Not(Contains(HasSubstr("is being filled"))));
  EXPECT_EQ(ReportOf(run).read_back(), "cache");
}

TEST(ReadBack, IsOfWhatReadsTheFileAsWell) {
  TestRun run = ReadsItsFileBack();
  run.disk.reset();
  run.nodes[3].cpu_seconds = 1e-3;
  run.rate = 1 / (64 * 1e-3);
  run.nodes[2].read_seconds = 1e-6;
  const Diagnosis diagnosis = DiagnosisOf(run);
  EXPECT_EQ(diagnosis.wall.wall, Wall::kSequential);
  EXPECT_THAT(diagnosis.sentence, HasSubstr("reads its rows back"));
  EXPECT_EQ(ReportOf(run).read_back(), "cache");
}

TEST(ReadBack, WithoutTheCacheOtherRowsCome) {
  TestRun run = ReadsItsFileBack();
  run.nodes[1].is_random = true;
  EXPECT_THAT(DiagnosisOf(run).sentence, HasSubstr("reads its rows back"));
  EXPECT_EQ(ReportOf(run).read_back(), "");
}

TEST(ReadBack, IsNoneWhileItIsFilledNorOfOtherWalls) {
  TestRun run = ReadsItsFileBack();
  run.nodes[4].cache->set_is_complete(false);
  EXPECT_EQ(ReportOf(run).read_back(), "");
  run = ReadsItsFileBack();
  run.nodes[5].cpu_seconds = 1 / run.rate;  // the batch
  EXPECT_EQ(ReportOf(run).read_back(), "");
}

}  // namespace
}  // namespace penstock::tuner
