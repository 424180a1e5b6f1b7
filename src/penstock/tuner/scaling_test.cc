#include "penstock/tuner/scaling.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace penstock::tuner {
namespace {

TEST(Scaling, IsLinearBelowOneTask) {
  EXPECT_EQ(WorkOf({}, 0.5), 0.5);
  EXPECT_EQ(TasksFor({}, 0.5), 0.5);
  EXPECT_EQ(WorkOf({}, 1), 1);
  EXPECT_EQ(TasksFor({}, 1), 1);
  EXPECT_EQ(WorkOf({}, -3), 0);
}

TEST(Scaling, TasksAreWhatDoesTheWork) {
  for (const Scaling& law : {Scaling{0.02, 0}, Scaling{0.1, 0.001},
                             Scaling{0, 0}, Scaling{0, 0.01}}) {
    for (double tasks : {1.5, 2.0, 4.0, 7.0}) {
      EXPECT_NEAR(TasksFor(law, WorkOf(law, tasks)), tasks, 1e-6 * tasks);
    }
  }
}

TEST(Scaling, WorkNeverFallsAndHasALimit) {
  const Scaling law = {0.05, 0.01};
  double last = 0;
  for (double tasks = 0; tasks < 200; tasks += 0.5) {
    EXPECT_GE(WorkOf(law, tasks), last);
    last = WorkOf(law, tasks);
  }
  EXPECT_LT(last, 6);
  EXPECT_TRUE(std::isinf(TasksFor(law, 2 * last)));
  EXPECT_TRUE(std::isinf(TasksFor({0.02, 0}, 51)));
}

TEST(FitScaling, FindsTheLaw) {
  const Scaling law = {0.15, 0.004};
  std::vector<ScalingPoint> points;
  for (double tasks : {1, 2, 4, 8, 12, 16}) {
    points.push_back({tasks, 70 * tasks / Slowdown(law, tasks)});
  }
  const Scaling fit = FitScaling(points);
  EXPECT_NEAR(fit.contention, law.contention, 0.03);
  EXPECT_NEAR(fit.coherence, law.coherence, 0.002);
}

TEST(FitScaling, KeepsThePriorWithoutEvidence) {
  const Scaling prior;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<ScalingPoint>& points :
       std::vector<std::vector<ScalingPoint>>{
           {}, {{1, 50}}, {{nan, 1}, {2, nan}, {-1, 5}, {4, 0}}}) {
    EXPECT_NEAR(FitScaling(points).contention, prior.contention, 1e-9);
    EXPECT_EQ(FitScaling(points).coherence, 0);
  }
  // Faster than linear is no law.
  const Scaling fit = FitScaling({{1, 10}, {4, 400}});
  EXPECT_GE(fit.contention, 0);
  EXPECT_GE(fit.coherence, 0);
}

}  // namespace
}  // namespace penstock::tuner
