#include "penstock/session/look_pace.h"

#include <algorithm>

namespace penstock::session {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNew = 10 * kSecond;
constexpr int64_t kFirst = kSecond / 4;
constexpr int64_t kUsual = kSecond;
constexpr int64_t kMost = 10 * kSecond;
// Of the run's CPU.
constexpr double kShare = 0.003;

}  // namespace

int64_t NanosToNextLook(int64_t age, const Look& last) {
  if (age < kNew) return kFirst;
  if (last.elapsed <= 0) return kUsual;
  const double used = static_cast<double>(last.run_cpu - last.cpu) /
                      static_cast<double>(last.elapsed);
  if (used <= 0) return kMost;
  const double wanted = static_cast<double>(last.cpu) / (kShare * used);
  return static_cast<int64_t>(std::clamp<double>(wanted, kUsual, kMost));
}

}  // namespace penstock::session
