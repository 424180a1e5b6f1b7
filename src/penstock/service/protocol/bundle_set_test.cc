#include "penstock/service/protocol/bundle_set.h"

#include <set>

#include "gtest/gtest.h"
#include "penstock/base/hash.h"

namespace penstock::service {
namespace {

TEST(BundleSet, RunsThatTouchAreOne) {
  BundleSet set;
  set.AddRun(4, 6);
  set.AddRun(8, 9);
  set.AddRun(6, 8);
  EXPECT_EQ(set.ToRuns().size(), 1);
  EXPECT_EQ(set.size(), 5);
  EXPECT_EQ(set.NextAbsent(5), 9);
  EXPECT_EQ(set.NextAbsent(3), 3);
}

TEST(BundleSet, NothingIsNothing) {
  BundleSet set;
  set.AddRun(3, 3);
  set.AddRun(5, 2);
  EXPECT_TRUE(set.empty());
  EXPECT_FALSE(set.Has(3));
}

TEST(BundleSet, IsWhatASetOfNumbersIs) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    uint64_t state = Mix(seed);
    BundleSet set;
    std::set<uint64_t> plain;
    for (int i = 0; i < 30; ++i) {
      const uint64_t begin = (state = Mix(state)) % 50;
      const uint64_t end = begin + (state = Mix(state)) % 6;
      set.AddRun(begin, end);
      for (uint64_t n = begin; n < end; ++n) plain.insert(n);
      for (uint64_t n = 0; n < 60; ++n) {
        ASSERT_EQ(set.Has(n), plain.contains(n)) << seed;
      }
      ASSERT_EQ(set.size(), plain.size());
    }
    EXPECT_EQ(BundleSet(set.ToRuns()), set);
    BundleSet other;
    for (int i = 0; i < 5; ++i) {
      state = Mix(state);
      const uint64_t begin = state % 50;
      other.AddRun(begin, begin + state / 50 % 10);
    }
    set.RemoveAll(other);
    for (uint64_t n = 0; n < 60; ++n) {
      ASSERT_EQ(set.Has(n), plain.contains(n) && !other.Has(n)) << seed;
    }
  }
}

}  // namespace
}  // namespace penstock::service
