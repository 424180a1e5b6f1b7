#include "penstock/io/disk_curve.h"

#include <pthread.h>

#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/base/mutex.h"
#include "penstock/io/fake_files.h"

namespace penstock::io {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr int64_t kMilli = 1'000'000;

// A time of each thread's own, which begins when the step does that it is of:
// what waits moves its own time on, and sleeps nowhere. Thread-safe.
class OwnTimes final : public Clock {
 public:
  // The measuring thread's call begins the next step.
  int64_t NowNanos() const override {
    MutexLock lock(&mutex_);
    return OfThread();
  }
  // This thread is done at `done(begin of the step, now)`.
  template <typename Done>
  void Move(const Done& done) const {
    MutexLock lock(&mutex_);
    int64_t& now = OfThread();
    now = done(start_, now);
    latest_ = std::max(latest_, now);
  }

 private:
  int64_t& OfThread() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (pthread_self() == main_) {
      start_ = latest_;
      others_.clear();
      return start_;
    }
    return others_.try_emplace(pthread_self(), start_).first->second;
  }

  const pthread_t main_ = pthread_self();
  mutable Mutex mutex_;
  mutable int64_t start_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable int64_t latest_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable std::map<pthread_t, int64_t> others_ ABSL_GUARDED_BY(mutex_);
};

// Each read takes `latency` and its bytes' time; all of a step together at
// least their bytes' time, whoever reads first.
class SlowFiles final : public FileSystem {
 public:
  SlowFiles(const OwnTimes& times, int64_t latency_ns, double bytes_per_second)
      : times_(times),
        latency_ns_(latency_ns),
        bytes_per_second_(bytes_per_second) {}

  FakeFiles fake;
  Mutex mutex;
  int64_t step ABSL_GUARDED_BY(mutex) = -1;  // when it began
  int64_t step_bytes ABSL_GUARDED_BY(mutex) = 0;
  int64_t bytes_read ABSL_GUARDED_BY(mutex) = 0;
  std::multiset<int64_t> offsets ABSL_GUARDED_BY(mutex);

  absl::StatusOr<std::unique_ptr<File>> Open(std::string_view path) override {
    absl::StatusOr<std::unique_ptr<File>> file = fake.Open(path);
    if (!file.ok()) return file.status();
    return std::make_unique<SlowFile>(*this, *std::move(file));
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      std::string_view path) override {
    return fake.Create(path);
  }
  absl::Status Rename(std::string_view from, std::string_view to) override {
    return fake.Rename(from, to);
  }
  absl::Status Remove(std::string_view path) override {
    return fake.Remove(path);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      std::string_view path) override {
    return fake.Lock(path);
  }
  absl::StatusOr<std::vector<std::string>> Glob(
      std::string_view pattern) override {
    return fake.Glob(pattern);
  }
  absl::StatusOr<bool> Exists(std::string_view path) override {
    return fake.Exists(path);
  }
  absl::StatusOr<bool> IsDirectory(std::string_view path) override {
    return fake.IsDirectory(path);
  }

 private:
  class SlowFile final : public File {
   public:
    SlowFile(SlowFiles& disk, std::unique_ptr<File> file)
        : disk_(disk), file_(std::move(file)) {}
    int64_t size() const override { return file_->size(); }
    absl::StatusOr<size_t> ReadAt(int64_t offset, char* dst,
                                  size_t num_bytes) override {
      absl::StatusOr<size_t> read = file_->ReadAt(offset, dst, num_bytes);
      disk_.times_.Move([&](int64_t step, int64_t now) {
        MutexLock lock(&disk_.mutex);
        if (disk_.step != step) disk_.step_bytes = 0;
        disk_.step = step;
        disk_.step_bytes += static_cast<int64_t>(num_bytes);
        disk_.offsets.insert(offset);
        disk_.bytes_read += static_cast<int64_t>(num_bytes);
        return std::max(now + disk_.latency_ns_ + disk_.NanosOf(num_bytes),
                        step + disk_.NanosOf(disk_.step_bytes));
      });
      return read;
    }
    absl::StatusOr<std::optional<size_t>> TryReadAt(int64_t, char*,
                                                    size_t) override {
      return std::nullopt;
    }

   private:
    SlowFiles& disk_;
    const std::unique_ptr<File> file_;
  };

  int64_t NanosOf(size_t bytes) const {
    return static_cast<int64_t>(static_cast<double>(bytes) * 1e9 /
                                bytes_per_second_);
  }

  const OwnTimes& times_;
  const int64_t latency_ns_;
  const double bytes_per_second_;
};

DiskCurveOptions Small() {
  DiskCurveOptions options;
  options.read_bytes = 1000;
  options.max_bytes = 1'000'000;
  return options;
}

TEST(DiskCurve, RisesWithReadsUpToWhatTheDiskGives) {
  const OwnTimes times;
  SlowFiles files(times, 1 * kMilli, 4e6);  // 1 MB/s a reader, 4 in all
  std::vector<std::string> paths;
  for (int i = 0; i < 40; ++i) {
    paths.push_back(absl::StrCat("f", i));
    files.fake.contents[paths.back()] = std::string(100'000, 'x');
  }
  const absl::StatusOr<DiskCurve> curve =
      MeasureDisk(files, paths, Small(), times);
  ASSERT_TRUE(curve.ok()) << curve.status();
  ASSERT_THAT(curve->points, SizeIs(6));
  EXPECT_EQ(curve->read_bytes, 1000);
  EXPECT_NEAR(curve->points[0].bytes_per_second, 0.8e6, 0.1e6);
  EXPECT_NEAR(curve->points[1].bytes_per_second, 1.6e6, 0.3e6);
  EXPECT_NEAR(curve->points[5].bytes_per_second, 4e6, 0.8e6);
  EXPECT_EQ(curve->points[5].reads, 32);
}

TEST(DiskCurve, StaysWithinItsBytesAndItsTime) {
  const OwnTimes times;
  SlowFiles files(times, 100 * kMilli, 1e9);
  files.fake.contents["f"] = std::string(10'000'000, 'x');
  const absl::StatusOr<DiskCurve> curve =
      MeasureDisk(files, {"f"}, Small(), times);
  ASSERT_TRUE(curve.ok()) << curve.status();
  {
    MutexLock lock(&files.mutex);
    EXPECT_LE(files.bytes_read, 1'000'000);
    // One file: no part of it twice.
    EXPECT_EQ(
        files.offsets.size(),
        std::set<int64_t>(files.offsets.begin(), files.offsets.end()).size());
  }
  EXPECT_LE(times.NowNanos(), 1'700 * kMilli);
}

TEST(DiskCurve, FilesTooSmallForAReadAreNone) {
  FakeFiles files;
  files.contents["small"] = std::string(999, 'x');
  EXPECT_EQ(MeasureDisk(files, {"small"}, Small()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(MeasureDisk(files, {}, Small()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(MeasureDisk(files, {"absent"}, Small()).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(DiskCurve, ABrokenFileIsItsError) {
  FakeFiles files;
  files.contents["f"] = std::string(100'000, 'x');
  files.settings.broken_at = 500;
  EXPECT_EQ(MeasureDisk(files, {"f"}, Small()).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(DiskCurve, FewBytesAreReadAgain) {
  FakeFiles files;
  files.contents["f"] = std::string(2'500, 'x');
  DiskCurveOptions options = Small();
  options.reads = {1, 4};
  const absl::StatusOr<DiskCurve> curve = MeasureDisk(files, {"f"}, options);
  ASSERT_TRUE(curve.ok()) << curve.status();
  EXPECT_THAT(curve->points, SizeIs(2));
}

}  // namespace
}  // namespace penstock::io
