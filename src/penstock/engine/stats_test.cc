#include "penstock/engine/stats.h"

#include <ctime>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/base/clock.h"
#include "penstock/engine/stream.h"

namespace penstock::engine {
namespace {

void Spin(int64_t nanos) {
  const int64_t until = SteadyClock().NowNanos() + nanos;
  while (SteadyClock().NowNanos() < until) {
  }
}

// Answers as it is told, after some work.
class ScriptedStream final : public Stream {
 public:
  ScriptedStream(NodeStats* stats, std::vector<Pull> answers)
      : Stream(stats), answers_(std::move(answers)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request&) override {
    Spin(1'000'000);
    return next_ < answers_.size() ? answers_[next_++] : Pull::End();
  }
  void DoSave(WireWriter&) const override {}
  absl::Status DoRestore(WireReader&) override { return absl::OkStatus(); }

 private:
  const std::vector<Pull> answers_;
  size_t next_ = 0;
};

Pull RowsOf(int64_t rows) {
  Chunk chunk;
  chunk.rows = rows;
  chunk.columns.push_back(
      Column::Dense(DType::kInt64, {4}, rows, Buffer::Allocate(rows * 32)));
  return Pull::Rows(std::move(chunk));
}

double Nanos(uint64_t ticks) {
  return static_cast<double>(ticks) * NanosPerTick();
}

TEST(Histogram, BucketsArePowersOfTwo) {
  EXPECT_EQ(Histogram::BucketOf(0), 0);
  EXPECT_EQ(Histogram::BucketOf(1), 1);
  EXPECT_EQ(Histogram::BucketOf(2), 2);
  EXPECT_EQ(Histogram::BucketOf(3), 2);
  EXPECT_EQ(Histogram::BucketOf(1 << 20), 21);
  EXPECT_EQ(Histogram::BucketOf(~uint64_t{0}), Histogram::kBuckets - 1);
}

TEST(StreamStats, TellsWorkFromBothKindsOfWaiting) {
  NodeStats stats;
  {
    ScriptedStream stream(&stats, {Pull::Blocked(), RowsOf(10)});
    const Waker nobody;
    ASSERT_TRUE(stream.Next({100, nobody})->is_blocked());
    Spin(20'000'000);  // until its input has come
    ASSERT_TRUE(stream.Next({100, nobody})->has_rows());
    Spin(50'000'000);  // until it is asked for more
    ASSERT_TRUE(stream.Next({100, nobody})->is_end());
  }
  EXPECT_EQ(stats.rows, 10u);
  EXPECT_EQ(stats.blocked, 1u);
  EXPECT_GE(Nanos(stats.self_ticks), 2.9e6);
  EXPECT_GE(Nanos(stats.wait_in_ticks), 19e6);
  EXPECT_GE(Nanos(stats.wait_out_ticks), 49e6);
  EXPECT_GT(Nanos(stats.wait_out_ticks), Nanos(stats.wait_in_ticks));
  EXPECT_LE(stats.cpu_ticks, stats.self_ticks);
  EXPECT_EQ(stats.largest_row, 32u);
  EXPECT_EQ(stats.bytes_per_row.rows[Histogram::BucketOf(32)], 10u);
  // A millisecond and more for ten rows.
  uint64_t slow = 0;
  for (int i = Histogram::BucketOf(90'000); i < Histogram::kBuckets; ++i) {
    slow += stats.nanos_per_row.rows[i];
  }
  EXPECT_EQ(slow, 10u);
}

TEST(StreamStats, WorkOfTasksIsItsServiceTime) {
  NodeStats stats;
  {
    const WorkTimer timer(stats, 4);
    Spin(4'000'000);
  }
  {
    ScriptedStream stream(&stats, {RowsOf(4)});
    const Waker nobody;
    ASSERT_TRUE(stream.Next({100, nobody})->has_rows());
  }
  EXPECT_EQ(stats.tasks, 1u);
  EXPECT_GE(Nanos(stats.task_ticks), 3.9e6);
  uint64_t rows = 0;
  for (const auto& bucket : stats.nanos_per_row.rows) rows += bucket;
  EXPECT_EQ(rows, 4u) << "those of the task alone";
}

TEST(ShareMeter, IsWhatAProcessorRan) {
  ShareMeter meter;
  meter.Begin(1'000'000'000);
  EXPECT_EQ(meter.share(), 1);
  ASSERT_TRUE(meter.Add(5e6));
  meter.Judge(1'005'000'000);
  EXPECT_EQ(meter.share(), 1);
  EXPECT_FALSE(meter.Add(1e6)) << "too little to judge by";
  ASSERT_TRUE(meter.Add(3e6)) << "but not for ever";
  meter.Judge(1'006'000'000);
  EXPECT_EQ(meter.share(), 0.25);
  // Work between slices is nobody's, but not more than all.
  ASSERT_TRUE(meter.Add(2e6));
  meter.Judge(1'016'000'000);
  EXPECT_EQ(meter.share(), 1);
}

// However busy the machine is: what others take makes it less.
TEST(CpuShare, FallsWhereAThreadIsSetAside) {
  {
    const SliceTimer timer;
    const timespec pause = {0, 50'000'000};
    nanosleep(&pause, nullptr);
  }
  EXPECT_LT(CpuShare(), 0.5);
}

}  // namespace
}  // namespace penstock::engine
