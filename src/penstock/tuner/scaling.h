// The scalability law: what p tasks of a node do, compared with one.
//
//   work(p) = p / (1 + contention (p - 1) + coherence p (p - 1))
//
// Below one task it is linear.
#pragma once

#include "absl/types/span.h"

namespace penstock::tuner {

struct Scaling {
  double contention = 0.02;  // what is believed before anything was seen
  double coherence = 0;
};

// Times the work of one task that `tasks` do, if they may also be fewer: never
// falls as `tasks` rises.
double WorkOf(const Scaling& scaling, double tasks);

// The tasks that do `work` times the work of one; infinite if none can.
double TasksFor(const Scaling& scaling, double work);

// How much longer a piece of work takes among `tasks` than alone, at least 1.
double Slowdown(const Scaling& scaling, double tasks);

struct ScalingPoint {
  double tasks = 1;
  double work = 1;  // rate, in any unit
};

// The law that fits what was seen at several numbers of tasks. The prior counts
// as a quarter of a point; never outside [0, 1] and [0, 0.1].
Scaling FitScaling(absl::Span<const ScalingPoint> points);

}  // namespace penstock::tuner
