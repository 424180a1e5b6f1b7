#include "penstock/session/machine_cpu.h"

#include <gtest/gtest.h>

namespace penstock::session {
namespace {

constexpr char kStat[] =
    "cpu  111 0 0 900 0 0 0 0 0 0\n"
    "cpu0 10 1 20 400 50 2 3 4 9 9\n"
    "cpu1 100 0 0 400 0 0 0 0 0 0\n"
    "cpu10 1 0 0 400 0 0 0 0 0 0\n"
    "intr 5 5 5\n"
    "cpu2 7 7 7 7 7 7 7 7 7 7\n";

std::optional<int64_t> BusyOf(const std::function<bool(int)>& is_ours) {
  return BusyNanos(kStat, is_ours, 100);
}

TEST(BusyNanos, IsWhatProcessorsDidNotRest) {
  EXPECT_EQ(BusyOf([](int cpu) { return cpu == 0; }), 400'000'000);
  EXPECT_EQ(BusyOf([](int) { return true; }), 1'410'000'000);
}

TEST(BusyNanos, IsOfOursAlone) {
  EXPECT_EQ(BusyOf([](int cpu) { return cpu == 10; }), 10'000'000);
  EXPECT_EQ(BusyOf([](int cpu) { return cpu == 2; }), std::nullopt);
  EXPECT_EQ(BusyNanos(
                "", [](int) { return true; }, 100),
            std::nullopt);
  EXPECT_EQ(BusyNanos(
                "cpu0 1 2\n", [](int) { return true; }, 100),
            std::nullopt);
}

TEST(MachineCpuNanos, IsNotLookedAtWhereThereIsAQuota) {
  EXPECT_EQ(MachineCpuNanos(1 << 20), std::nullopt);
}

}  // namespace
}  // namespace penstock::session
