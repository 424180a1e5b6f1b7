#include "penstock/session/speeds.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/io/fake_files.h"

namespace penstock::session {
namespace {

io::DiskCurve Curve() {
  io::DiskCurve curve;
  curve.read_bytes = 262144;
  curve.points = {{1, 50e6}, {2, 99.5e6}, {32, 1.25e9}};
  return curve;
}

bool IsSame(const std::optional<io::DiskCurve>& a, const io::DiskCurve& b) {
  if (!a || a->read_bytes != b.read_bytes ||
      a->points.size() != b.points.size()) {
    return false;
  }
  for (size_t i = 0; i < b.points.size(); ++i) {
    if (a->points[i].reads != b.points[i].reads ||
        a->points[i].bytes_per_second != b.points[i].bytes_per_second) {
      return false;
    }
  }
  return true;
}

TEST(SpeedsText, GoesAndComesBack) {
  const std::string text = CurveText("a key", 1000, Curve());
  EXPECT_TRUE(IsSame(CurveOf(text, "a key", 1000), Curve()));
  EXPECT_FALSE(CurveOf(text, "a key", 1001));  // too old
  EXPECT_FALSE(CurveOf(text, "another", 0));
}

TEST(SpeedsText, DamageIsSeen) {
  const std::string text = CurveText("a key", 1000, Curve());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    EXPECT_FALSE(CurveOf(damaged, "a key", 0)) << i;
    EXPECT_FALSE(CurveOf(text.substr(0, i), "a key", 0)) << i;
  }
}

TEST(SpeedsDirectory, IsWhereTheUserHasCaches) {
  const auto variables = [](std::string cache, std::string home) {
    return [=](const std::string& name) -> std::optional<std::string> {
      if (name == "XDG_CACHE_HOME") return cache;
      return name == "HOME" ? std::optional(home) : std::nullopt;
    };
  };
  EXPECT_EQ(SpeedsDirectory(variables("/c", "/h")), "/c/penstock/speeds");
  EXPECT_EQ(SpeedsDirectory(variables("", "/h")), "/h/.cache/penstock/speeds");
  EXPECT_EQ(SpeedsDirectory(variables("relative", "/h")),
            "/h/.cache/penstock/speeds");
  EXPECT_EQ(SpeedsDirectory(variables("", "")), "");
}

TEST(DeviceOf, HasTheFileSystem) {
  EXPECT_FALSE(DeviceOf("/there/is/none",
                        [](const std::string&) { return std::nullopt; }));
  const std::optional<std::string> number =
      DeviceOf("/", [](const std::string&) { return std::nullopt; });
  ASSERT_TRUE(number);
  const std::string mounts = "1 0 0:99 / /x rw - tmpfs none rw\n22 1 " +
                             *number + " / / rw shared:1 - ext4 /dev/sda rw\n";
  EXPECT_EQ(DeviceOf("/", [&](const std::string&) { return mounts; }),
            *number + " / ext4 /dev/sda");
}

class SpeedsTest : public testing::Test {
 protected:
  SpeedsTest() {
    options_.directory = folder_ / "speeds";
    options_.read = [](const std::string&) { return std::nullopt; };
    options_.now_seconds = [this] { return now_; };
    options_.measure =
        [this](
            io::FileSystem&, absl::Span<const std::string>,
            const io::DiskCurveOptions& how) -> absl::StatusOr<io::DiskCurve> {
      ++measured_;
      io::DiskCurve curve = Curve();
      curve.read_bytes = how.read_bytes;
      return curve;
    };
    std::filesystem::create_directories(folder_);
  }
  ~SpeedsTest() override { std::filesystem::remove_all(folder_); }

  std::optional<io::DiskCurve> Ask(double bytes = 262144) {
    return Speeds(options_).OfFiles(io::LocalFileSystem(), {folder_}, bytes);
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("speeds_test." + std::to_string(getpid()));
  Speeds::Options options_;
  int64_t now_ = 1'000'000;
  int measured_ = 0;
};

TEST_F(SpeedsTest, AreMeasuredOnceForAllProcesses) {
  EXPECT_TRUE(IsSame(Ask(), Curve()));
  EXPECT_TRUE(IsSame(Ask(), Curve()));
  EXPECT_TRUE(IsSame(Ask(200e3), Curve()));  // about the same size
  EXPECT_EQ(measured_, 1);
  EXPECT_TRUE(Ask(16e3));
  EXPECT_EQ(measured_, 2);
}

TEST_F(SpeedsTest, AreMeasuredAgainWhenOldOrDamaged) {
  Ask();
  now_ += 25 * 3600;
  Ask();
  EXPECT_EQ(measured_, 2);
  for (const auto& entry :
       std::filesystem::directory_iterator(options_.directory)) {
    std::ofstream(entry.path()) << "something else";
  }
  EXPECT_TRUE(IsSame(Ask(), Curve()));
  EXPECT_EQ(measured_, 3);
}

TEST_F(SpeedsTest, OldOnesAreRemoved) {
  std::filesystem::create_directories(options_.directory);
  const auto old = std::filesystem::path(options_.directory) / "old";
  std::ofstream(old) << "of a disk that is gone";
  std::filesystem::last_write_time(
      old,
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(49));
  Ask();
  EXPECT_FALSE(std::filesystem::exists(old));
}

TEST_F(SpeedsTest, WithoutADirectoryTheyLastAsLongAsTheProcess) {
  options_.directory = "";
  Speeds speeds(options_);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(speeds.OfFiles(io::LocalFileSystem(), {folder_}, 262144));
  }
  EXPECT_EQ(measured_, 1);
}

TEST_F(SpeedsTest, WhatCannotBeMeasuredIsNotKnown) {
  options_.measure = [](auto&&...) {
    return absl::NotFoundError("no file is large enough");
  };
  EXPECT_FALSE(Ask());
  EXPECT_FALSE(Ask(0));
}

TEST_F(SpeedsTest, OfADirectoryLeaveNothingBehind) {
  EXPECT_EQ(Speeds(options_).OfDirectory(folder_), 50e6);
  EXPECT_EQ(Speeds(options_).OfDirectory(folder_), 50e6);
  EXPECT_EQ(measured_, 1);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    left.push_back(entry.path().filename());
  }
  EXPECT_THAT(left, testing::ElementsAre("speeds"));
}

TEST_F(SpeedsTest, OfMemoryAreSomething) {
  const double speed = Speeds(options_).OfMemory(2);
  EXPECT_GT(speed, 1e8);
  // From the directory.
  EXPECT_NEAR(Speeds(options_).OfMemory(2), speed, 1e-4 * speed);
}

}  // namespace
}  // namespace penstock::session
