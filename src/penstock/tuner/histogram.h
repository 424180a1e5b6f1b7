// What log2 histograms tell: the variance and the tail of a value.
//
// Values of a bucket are taken to lie where its middle is, so a coefficient of
// variation of nearly equal values reads as up to 0.2 too much.
#pragma once

#include "penstock/snapshot.pb.h"

namespace penstock::tuner {

struct Spread {
  double count = 0;
  double mean = 0;
  double cv = 0;  // standard deviation / mean; 0 if nothing was counted
};

Spread SpreadOf(const plan::Histogram& histogram);

// The value that a share `q` of all values is below; 0 if there are none.
double Quantile(const plan::Histogram& histogram, double q);

double MeanOf(const plan::Histogram& histogram);

struct Tail {
  double share = 0;        // of values that are above a limit
  double mean_excess = 0;  // of max(0, value - limit), over all values
};
Tail TailAbove(const plan::Histogram& histogram, double limit);

}  // namespace penstock::tuner
