#include "penstock/session/look_pace.h"

#include <algorithm>

namespace penstock::session {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNew = 10 * kSecond;
constexpr int64_t kFirst = kSecond / 4;
constexpr int64_t kMostFirst = kSecond / 2;
constexpr int64_t kUsual = kSecond;
constexpr int64_t kMost = 30 * kSecond;
// Of the run's CPU.
constexpr double kShare = 0.002;

}  // namespace

int64_t NanosToNextLook(int64_t age, const Look& last) {
  const int64_t least = age < kNew ? kFirst : kUsual;
  const int64_t most = age < kNew ? kMostFirst : kMost;
  if (last.elapsed <= 0) return least;
  const double used = static_cast<double>(last.run_cpu - last.cpu) /
                      static_cast<double>(last.elapsed);
  if (used <= 0) return most;
  const double wanted = static_cast<double>(last.cpu) / (kShare * used);
  return std::clamp(static_cast<int64_t>(std::min(wanted, 1e18)), least, most);
}

}  // namespace penstock::session
