#include "penstock/engine/ops/task_size.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "penstock/engine/stream.h"

namespace penstock::engine {
namespace {

constexpr int64_t kWorth = 60'000;

// Tasks of `size`, each row of which takes so long and has so many bytes; no
// more than `most` rows are there for one.
void Learned(TaskSize& size, int64_t row_nanos, int64_t row_bytes,
             int64_t most = kMaxChunkRows) {
  for (int i = 0; i < 100; ++i) {
    const int64_t rows = std::min(most, size.rows());
    size.Learn(rows, rows * row_bytes, rows * row_nanos);
  }
}

TEST(TaskSize, GrowsUntilATaskIsWorthIt) {
  TaskSize size(kWorth);
  EXPECT_EQ(size.rows(), 1);
  Learned(size, 1000, 8);
  EXPECT_GE(size.rows() * 1000, kWorth);
  EXPECT_LE(size.rows() * 1000, 8 * kWorth);
  Learned(size, 1, 8);
  EXPECT_EQ(size.rows(), kMaxChunkRows);
}

TEST(TaskSize, ShrinksWhereOthersWait) {
  TaskSize size(kWorth);
  Learned(size, 1, 8);
  Learned(size, 1'000'000, 8);
  EXPECT_LE(size.rows(), 3);
}

// Somebody who asks for ten rows at a time is given short tasks, whatever the
// number of rows that would be worth one.
TEST(TaskSize, DoesNotGrowByTasksThatWereCutShort) {
  TaskSize size(kWorth);
  Learned(size, 1000, 8, /*most=*/10);
  EXPECT_LE(size.rows(), 80);
}

TEST(TaskSize, HasNoMoreBytesThanAChunk) {
  TaskSize size(kWorth);
  Learned(size, 100, 49'152);
  EXPECT_EQ(size.rows(), kMaxChunkBytes / 49'152);
  Learned(size, 100, 2 * kMaxChunkBytes);
  EXPECT_EQ(size.rows(), 1);
  Learned(size, 1000, 0);
  EXPECT_GE(size.rows() * 1000, kWorth) << "rows without bytes";
}

}  // namespace
}  // namespace penstock::engine
