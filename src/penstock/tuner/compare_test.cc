#include "penstock/tuner/compare.h"

#include <gtest/gtest.h>

#include <random>

namespace penstock::tuner {
namespace {

// How often windows of `after` / `before` = ratio end with each verdict.
struct Tally {
  int better = 0, worse = 0, same = 0;
  double windows = 0;  // mean
};

Tally Decide(double ratio, double noise, int trials) {
  std::mt19937_64 random(7);
  Tally tally;
  for (int trial = 0; trial < trials; ++trial) {
    Rates before, after;
    for (int i = 0; i < 8; ++i) {
      before.Add(std::normal_distribution<double>(1, noise)(random));
    }
    Verdict verdict = Verdict::kUnclear;
    while (verdict == Verdict::kUnclear) {
      after.Add(ratio * std::normal_distribution<double>(1, noise)(random));
      verdict = Compare(before, after);
    }
    tally.better += verdict == Verdict::kBetter;
    tally.worse += verdict == Verdict::kWorse;
    tally.same += verdict == Verdict::kSame;
    tally.windows += static_cast<double>(after.count()) / trials;
  }
  return tally;
}

TEST(Compare, SeesWhatIsThere) {
  EXPECT_GE(Decide(1.3, 0.05, 500).better, 495);
  EXPECT_GE(Decide(0.7, 0.05, 500).worse, 495);
  // The clearer, the sooner.
  EXPECT_LT(Decide(0.5, 0.05, 500).windows, 4.5);
}

TEST(Compare, SeesNothingWhereThereIsNothing) {
  const Tally tally = Decide(1, 0.05, 1000);
  EXPECT_GE(tally.same, 930);
  EXPECT_LE(tally.worse, 40);
}

TEST(Compare, NeedsWindows) {
  Rates before, after;
  before.Add(1);
  before.Add(1);
  after.Add(9);
  EXPECT_EQ(Compare(before, after), Verdict::kUnclear);
}

TEST(Rates, AreMeansAndVariances) {
  Rates rates;
  EXPECT_EQ(rates.variance(), 0);
  for (double rate : {2.0, 4.0, 6.0}) rates.Add(rate);
  EXPECT_DOUBLE_EQ(rates.mean(), 4);
  EXPECT_DOUBLE_EQ(rates.variance(), 4);
}

}  // namespace
}  // namespace penstock::tuner
