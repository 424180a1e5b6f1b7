#include "penstock/tuner/size.h"

#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/tuner/measured_testing.h"

namespace penstock::tuner {
namespace {

plan::FileCounts Sample(const std::vector<double>& sizes, uint64_t total) {
  plan::FileCounts files;
  files.set_total(total);
  files.set_opened(sizes.size());
  for (double size : sizes) {
    files.set_opened_bytes(files.opened_bytes() + size);
    files.set_opened_bytes_squared(files.opened_bytes_squared() + size * size);
  }
  return files;
}

TEST(FileBytes, IsExactWhereAllIsKnown) {
  plan::FileCounts files;
  files.set_total_bytes(1234);
  EXPECT_EQ(FileBytes(files)->low, 1234);
  EXPECT_EQ(*FileBytes(files)->high, 1234);
  const std::optional<Size> seen = FileBytes(Sample({10, 20, 60}, 3));
  EXPECT_EQ(seen->middle, 90);
  EXPECT_EQ(*seen->high, 90);
}

TEST(FileBytes, SaysHowLittleIsKnown) {
  EXPECT_FALSE(FileBytes({}));
  EXPECT_FALSE(FileBytes(Sample({}, 10)));
  const std::optional<Size> one = FileBytes(Sample({100}, 10));
  EXPECT_EQ(one->middle, 1000);
  EXPECT_EQ(one->low, 100);
  EXPECT_FALSE(one->high);
}

TEST(FileBytes, TheIntervalHoldsTheTruth) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> size(10, 0.5);
  int held = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> all(1000);
    double sum = 0;
    for (double& each : all) sum += each = size(random);
    const std::optional<Size> estimate =
        FileBytes(Sample({all.begin(), all.begin() + 30}, all.size()));
    held += estimate->low <= sum && sum <= *estimate->high;
  }
  EXPECT_GE(held, 180);  // two standard errors of a skewed distribution
}

TEST(SizeAfter, FollowsTheRowsUp) {
  TestRun run;
  TestNode read = Source(1000, 100);
  read.read_bytes = 500;                            // compressed
  read.files = Sample({5e6, 5e6}, 10);              // 50 MB, so 100,000 rows
  TestNode filter = Map("filter", 1e-6, 1000, 64);  // keeps 64 %
  filter.op = plan::Node::kFilter;
  run.nodes = {read, filter, Batch(64, 64'000)};
  const Model model = ModelOf(run);
  const std::optional<RowsAndBytes> source = SizeAfter(model, 0);
  ASSERT_TRUE(source);
  EXPECT_NEAR(source->rows.middle, 100'000, 10);
  EXPECT_NEAR(source->bytes.middle, 100e6, 1e4);
  const std::optional<RowsAndBytes> kept = SizeAfter(model, 1);
  EXPECT_NEAR(kept->rows.middle, 64'000, 10);
  EXPECT_NEAR(SizeAfter(model, 2)->rows.middle, 1'000, 1);
  EXPECT_NEAR(SizeAfter(model, 2)->bytes.middle, 64e6, 1e4);
  ASSERT_TRUE(kept->bytes.high);
  EXPECT_LE(*kept->bytes.high, 1.02 * kept->bytes.middle);
}

// A full cache is read again and again, and its files never more.
TEST(SizeAfter, CountsTheRowsOfACache) {
  TestRun run;
  run.nodes.resize(3);
  TestNode& files = run.nodes[0];
  files.name = "files";
  files.op = plan::Node::kReadFiles;
  files.files = Sample({1e6}, 1);
  TestNode& cache = run.nodes[1];
  cache.name = "cache";
  cache.op = plan::Node::kCache;
  cache.cache = plan::CacheCounts();
  cache.cache->set_is_complete(true);
  cache.cache->set_held_rows(500);
  TestNode& half = run.nodes[2];
  half.name = "half";
  half.visits = 32;
  const std::optional<RowsAndBytes> size = SizeAfter(ModelOf(run), 2);
  ASSERT_TRUE(size);
  EXPECT_NEAR(size->rows.middle, 250, 5);
  EXPECT_NEAR(size->bytes.middle, 250e3, 10e3);
  // Filled by another run: nobody knows.
  cache.cache->set_held_rows(0);
  EXPECT_FALSE(SizeAfter(ModelOf(run), 2));
}

TEST(SizeAfter, IsUnknownWithoutAnEndOrASource) {
  TestRun run;
  run.nodes = {Source(), Map("map", 1e-3), Batch()};
  EXPECT_FALSE(SizeAfter(ModelOf(run), 1));
  run.nodes[1].is_infinite = true;
  EXPECT_FALSE(SizeAfter(ModelOf(run), 1));
  run.nodes[1].is_infinite = false;
  run.nodes[1].cardinality = 500;
  EXPECT_EQ(SizeAfter(ModelOf(run), 1)->rows.middle, 500);
  EXPECT_EQ(SizeAfter(ModelOf(run), 1)->bytes.middle, 500'000);
}

}  // namespace
}  // namespace penstock::tuner
