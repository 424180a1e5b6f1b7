#include "penstock/tuner/histogram.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace penstock::tuner {
namespace {

constexpr int kMaxBuckets = 65;

constexpr std::array<double, kMaxBuckets> MakeMiddles() {
  std::array<double, kMaxBuckets> middles = {0.5};
  double end = 2;
  for (int b = 1; b < kMaxBuckets; ++b, end *= 2) middles[b] = 0.75 * end;
  return middles;
}

// Where values of a bucket are taken to lie.
constexpr std::array<double, kMaxBuckets> kMiddles = MakeMiddles();

int BucketsOf(const plan::Histogram& histogram) {
  return std::min(histogram.counts_size(), kMaxBuckets);
}

double MiddleOf(int bucket) { return kMiddles[bucket]; }

double CountOf(const plan::Histogram& histogram) {
  double count = 0;
  for (uint64_t each : histogram.counts()) count += static_cast<double>(each);
  return count;
}

}  // namespace

Spread SpreadOf(const plan::Histogram& histogram) {
  Spread spread;
  spread.count = CountOf(histogram);
  if (spread.count <= 0) return spread;
  for (int b = 0; b < BucketsOf(histogram); ++b) {
    spread.mean +=
        MiddleOf(b) * (static_cast<double>(histogram.counts(b)) / spread.count);
  }
  double variance = 0;
  for (int b = 0; b < BucketsOf(histogram); ++b) {
    const double away = MiddleOf(b) / spread.mean - 1;
    variance +=
        away * away * (static_cast<double>(histogram.counts(b)) / spread.count);
  }
  spread.cv = std::sqrt(variance);
  return spread;
}

double Quantile(const plan::Histogram& histogram, double q) {
  const double count = CountOf(histogram);
  double below = 0;
  double last = 0;
  for (int b = 0; b < BucketsOf(histogram); ++b) {
    if (histogram.counts(b) == 0) continue;
    below += static_cast<double>(histogram.counts(b));
    last = MiddleOf(b);
    if (below >= q * count) return last;
  }
  return last;
}

double MeanOf(const plan::Histogram& histogram) {
  double count = 0;
  double sum = 0;
  for (int b = 0; b < BucketsOf(histogram); ++b) {
    const auto values = static_cast<double>(histogram.counts(b));
    count += values;
    sum += values * MiddleOf(b);
  }
  return count > 0 ? sum / count : 0;
}

Tail TailAbove(const plan::Histogram& histogram, double limit) {
  double count = 0;
  Tail tail;
  for (int b = 0; b < BucketsOf(histogram); ++b) {
    const auto values = static_cast<double>(histogram.counts(b));
    count += values;
    if (MiddleOf(b) <= limit) continue;
    tail.share += values;
    tail.mean_excess += values * (MiddleOf(b) - limit);
  }
  if (count <= 0) return {};
  return {tail.share / count, tail.mean_excess / count};
}

}  // namespace penstock::tuner
