#include "penstock/tuner/compare.h"

#include <algorithm>
#include <cmath>

namespace penstock::tuner {
namespace {

constexpr int64_t kFewestWindows = 3;
constexpr double kMatters = 0.01;
// Less noise than this is luck: two windows may happen to be alike.
constexpr double kLeastDeviation = 0.01;

double Threshold(int64_t windows) {
  if (windows <= 4) return 5;
  return windows <= 8 ? 3.5 : 3;
}

double ErrorSquared(const Rates& rates) {
  const double least = kLeastDeviation * rates.mean();
  return std::max(rates.variance(), least * least) /
         static_cast<double>(std::max<int64_t>(1, rates.count()));
}

}  // namespace

void Rates::Add(double rate) {
  ++count_;
  const double away = rate - mean_;
  mean_ += away / static_cast<double>(count_);
  squares_ += away * (rate - mean_);
}

double Rates::variance() const {
  return count_ < 2 ? 0 : squares_ / static_cast<double>(count_ - 1);
}

Verdict Compare(const Rates& before, const Rates& after) {
  const int64_t windows = std::min(before.count(), after.count());
  if (windows < kFewestWindows) return Verdict::kUnclear;
  const double difference = after.mean() - before.mean();
  const double error = std::sqrt(ErrorSquared(before) + ErrorSquared(after));
  if (std::abs(difference) > kMatters * before.mean() &&
      std::abs(difference) > Threshold(windows) * error) {
    return difference > 0 ? Verdict::kBetter : Verdict::kWorse;
  }
  return after.count() < kMaxWindowsCompared ? Verdict::kUnclear
                                             : Verdict::kSame;
}

}  // namespace penstock::tuner
