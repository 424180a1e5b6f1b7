#include "penstock/session/look_pace.h"

#include <gtest/gtest.h>

namespace penstock::session {
namespace {

constexpr int64_t kMillis = 1'000'000;
constexpr int64_t kSecond = 1'000 * kMillis;

TEST(NanosToNextLook, IsShortWhileARunIsNew) {
  EXPECT_EQ(NanosToNextLook(kSecond, {}), kSecond / 4);
  EXPECT_EQ(NanosToNextLook(kSecond, {kMillis / 4, kSecond, kSecond}),
            kSecond / 4);
  EXPECT_EQ(NanosToNextLook(kSecond, {kMillis, kMillis, kSecond}), kSecond / 2)
      << "a run that does nothing";
}

TEST(NanosToNextLook, IsASecondWhereThatCostsLittle) {
  EXPECT_EQ(NanosToNextLook(60 * kSecond, {}), kSecond);
  EXPECT_EQ(NanosToNextLook(60 * kSecond, {kMillis / 2, kSecond, kSecond}),
            kSecond);
}

// Over a long time it costs so much of what the run uses, whatever that is.
TEST(NanosToNextLook, IsLongerWhereARunDoesLittle) {
  for (const int64_t run_cpu : {30 * kMillis, 60 * kMillis, 100 * kMillis}) {
    const int64_t cost = kMillis / 2;
    const int64_t next =
        NanosToNextLook(60 * kSecond, {cost, run_cpu + cost, kSecond});
    const double used = static_cast<double>(run_cpu) / kSecond;
    EXPECT_LE(static_cast<double>(cost) / (used * static_cast<double>(next)),
              0.0025);
    EXPECT_LE(next, 30 * kSecond);
  }
  EXPECT_EQ(NanosToNextLook(60 * kSecond, {kMillis, kMillis, kSecond}),
            30 * kSecond)
      << "a run that does nothing";
}

}  // namespace
}  // namespace penstock::session
