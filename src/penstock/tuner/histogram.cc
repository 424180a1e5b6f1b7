#include "penstock/tuner/histogram.h"

#include <algorithm>
#include <cmath>

namespace penstock::tuner {
namespace {

double MiddleOf(int bucket) {
  return bucket == 0 ? 0.5 : 0.75 * std::ldexp(1.0, bucket);
}

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
  for (int b = 0; b < histogram.counts_size(); ++b) {
    spread.mean +=
        MiddleOf(b) * (static_cast<double>(histogram.counts(b)) / spread.count);
  }
  double variance = 0;
  for (int b = 0; b < histogram.counts_size(); ++b) {
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
  for (int b = 0; b < histogram.counts_size(); ++b) {
    if (histogram.counts(b) == 0) continue;
    below += static_cast<double>(histogram.counts(b));
    last = MiddleOf(b);
    if (below >= q * count) return last;
  }
  return last;
}

double MeanExcess(const plan::Histogram& histogram, double limit) {
  const double count = CountOf(histogram);
  if (count <= 0) return 0;
  double excess = 0;
  for (int b = 0; b < histogram.counts_size(); ++b) {
    excess += std::max(0.0, MiddleOf(b) - limit) *
              (static_cast<double>(histogram.counts(b)) / count);
  }
  return excess;
}

double ShareAbove(const plan::Histogram& histogram, double limit) {
  const double count = CountOf(histogram);
  if (count <= 0) return 0;
  double above = 0;
  for (int b = 0; b < histogram.counts_size(); ++b) {
    if (MiddleOf(b) > limit) above += static_cast<double>(histogram.counts(b));
  }
  return above / count;
}

}  // namespace penstock::tuner
