// Rates before and after a change, and whether one is better.
#pragma once

#include <cstdint>

namespace penstock::tuner {

// The mean and variance of rates seen in windows.
class Rates final {
 public:
  void Add(double rate);
  int64_t count() const { return count_; }
  double mean() const { return mean_; }
  // Of one window; 0 of fewer than two.
  double variance() const;

 private:
  int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;  // of what is away from the mean
};

enum class Verdict {
  kUnclear,  // look at more windows
  kBetter,
  kWorse,
  kSame,  // enough windows, and no difference that matters
};

// Windows after the change that are looked at, at most.
inline constexpr int64_t kMaxWindowsCompared = 24;

// Welch's test, asked again after each window: the threshold is higher while
// there are few, since who looks often is fooled more often. Differences of
// less than 1 % do not matter.
Verdict Compare(const Rates& before, const Rates& after);

}  // namespace penstock::tuner
