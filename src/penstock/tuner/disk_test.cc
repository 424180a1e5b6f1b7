#include "penstock/tuner/disk.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::tuner {
namespace {

constexpr double kBytes = 256 << 10;

struct LawCase {
  std::string name;
  DiskLaw truth;
  double noise = 0;  // alternating
};

class DiskLawTest : public testing::TestWithParam<LawCase> {};

TEST_P(DiskLawTest, IsFoundFromItsCurve) {
  const LawCase& c = GetParam();
  std::vector<DiskPoint> points;
  double sign = 1;
  for (double reads : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0}) {
    points.push_back({reads, BytesPerSecond(c.truth, reads, kBytes, reads) *
                                 (1 + sign * c.noise)});
    sign = -sign;
  }
  const std::optional<DiskLaw> law = FitDisk(points, kBytes);
  ASSERT_TRUE(law);
  EXPECT_LE(law->error, 0.03 + 2 * c.noise);
  for (double reads : {1.0, 3.0, 8.0, 32.0}) {
    for (double bytes : {kBytes, 4 * kBytes}) {
      for (double sources : {1.0, 16.0}) {
        const double want = BytesPerSecond(c.truth, reads, bytes, sources);
        EXPECT_NEAR(BytesPerSecond(*law, reads, bytes, sources), want,
                    (0.05 + 3 * c.noise) * want)
            << reads << " reads of " << bytes << " in " << sources;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Disks, DiskLawTest,
    testing::ValuesIn<LawCase>({
        {.name = "Latency", .truth = {.peak = 400e6, .latency = 5e-3}},
        {.name = "Bandwidth", .truth = {.peak = 50e6}},
        {.name = "Seeks", .truth = {.peak = 150e6, .seek = 8e-3}},
        {.name = "Fast", .truth = {.peak = 3e9, .latency = 100e-6}},
        {.name = "Noisy",
         .truth = {.peak = 400e6, .latency = 5e-3},
         .noise = 0.05},
    }),
    [](const auto& info) { return info.param.name; });

TEST(DiskLaw, OfNothingIsNone) {
  EXPECT_FALSE(FitDisk({}, kBytes));
  const std::vector<DiskPoint> bad = {
      {0, 1e6}, {1, 0}, {2, -1}, {4, std::nan("")}, {8, INFINITY}};
  EXPECT_FALSE(FitDisk(bad, kBytes));
  const std::vector<DiskPoint> one = {{1, 1e6}};
  EXPECT_FALSE(FitDisk(one, 0));
  EXPECT_FALSE(FitDisk(one, std::nan("")));
  EXPECT_TRUE(FitDisk(one, kBytes));
}

TEST(DiskLaw, TheKneeIsWhereMoreReadsWait) {
  const DiskLaw law = {.peak = 100e6, .latency = 10e-3};
  const double knee = KneeOf(law, kBytes, 1);
  EXPECT_NEAR(knee, 1 + 10e-3 * 100e6 / kBytes, 1e-9);
  EXPECT_NEAR(BytesPerSecond(law, knee, kBytes, 1), 100e6, 1);
  EXPECT_LT(BytesPerSecond(law, knee - 1, kBytes, 1), 80e6);
}

}  // namespace
}  // namespace penstock::tuner
