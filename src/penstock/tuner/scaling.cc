#include "penstock/tuner/scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock::tuner {
namespace {

constexpr double kMaxCoherence = 0.1;
constexpr double kPriorWeight = 0.25;  // of a point

}  // namespace

double Slowdown(const Scaling& scaling, double tasks) {
  if (tasks <= 1) return 1;
  return 1 + scaling.contention * (tasks - 1) +
         scaling.coherence * tasks * (tasks - 1);
}

double WorkOf(const Scaling& scaling, double tasks) {
  if (tasks <= 1) return std::max(tasks, 0.0);
  if (scaling.coherence > 0) {
    // Beyond the peak, more tasks only hinder: the peak's would be used.
    const double peak =
        std::sqrt(std::max(0.0, 1 - scaling.contention) / scaling.coherence);
    tasks = std::min(tasks, std::max(peak, 1.0));
  }
  return tasks / Slowdown(scaling, tasks);
}

double TasksFor(const Scaling& scaling, double work) {
  if (work <= 1) return std::max(work, 0.0);
  // a p^2 + b p + c = 0, from the law; the smaller root.
  const double a = work * scaling.coherence;
  const double b = work * (scaling.contention - scaling.coherence) - 1;
  const double c = work * (1 - scaling.contention);
  const double square = b * b - 4 * a * c;
  if (b >= 0 || square < 0) return std::numeric_limits<double>::infinity();
  return 2 * c / (-b + std::sqrt(square));
}

Scaling FitScaling(absl::Span<const ScalingPoint> points) {
  const Scaling prior;
  // The work of one task: the least slowed point, by the prior.
  double one = 0;
  double fewest = std::numeric_limits<double>::infinity();
  for (const ScalingPoint& point : points) {
    if (!(point.tasks >= 1) || !(point.work > 0)) continue;
    if (!std::isfinite(point.tasks) || !std::isfinite(point.work)) continue;
    if (point.tasks < fewest) {
      fewest = point.tasks;
      one = point.work * Slowdown(prior, point.tasks) / point.tasks;
    }
  }
  if (one <= 0) return prior;
  // Least squares of tasks * one / work - 1 = s (p - 1) + k p (p - 1), with
  // the prior as a part of a point of two tasks for each unknown.
  double ss = kPriorWeight, sk = 0, kk = 4 * kPriorWeight;
  double sy = kPriorWeight * prior.contention;
  double ky = 4 * kPriorWeight * prior.coherence;
  for (const ScalingPoint& point : points) {
    if (!(point.tasks > 1) || !(point.work > 0)) continue;
    if (!std::isfinite(point.tasks) || !std::isfinite(point.work)) continue;
    // Divided by p - 1, so that large numbers do not decide alone.
    const double y = (point.tasks * one / point.work - 1) / (point.tasks - 1);
    ss += 1;
    sk += point.tasks;
    kk += point.tasks * point.tasks;
    sy += y;
    ky += point.tasks * y;
  }
  const double determinant = ss * kk - sk * sk;
  Scaling fit;
  fit.coherence = determinant > 0 ? (ss * ky - sk * sy) / determinant : 0;
  fit.coherence = std::clamp(fit.coherence, 0.0, kMaxCoherence);
  fit.contention = std::clamp((sy - fit.coherence * sk) / ss, 0.0, 1.0);
  return fit;
}

}  // namespace penstock::tuner
