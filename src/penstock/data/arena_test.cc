#include "penstock/data/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace penstock {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

TEST(ArenaTest, GivesAlignedMemory) {
  Arena arena(kMebibyte);
  for (size_t size : {0, 1, 64, 65, 1000}) {
    const auto region = arena.Allocate(size);
    ASSERT_TRUE(region.ok());
    EXPECT_EQ(region->offset % 64, 0);
    EXPECT_GE(region->size, size);
    std::memset(region->data, 1, region->size);
  }
}

TEST(ArenaTest, LowestAddressFirst) {
  Arena arena(kMebibyte);
  const auto a = *arena.Allocate(64);
  const auto b = *arena.Allocate(64);
  EXPECT_EQ(b.offset, 64);
  arena.Free(a);
  EXPECT_EQ(arena.Allocate(64)->offset, 0);
}

TEST(ArenaTest, RefusesPastItsLimit) {
  Arena arena(1024);
  EXPECT_EQ(arena.Allocate(2000).status().code(),
            absl::StatusCode::kResourceExhausted);
  const auto all = arena.Allocate(1024);
  ASSERT_TRUE(all.ok());
  EXPECT_FALSE(arena.Allocate(1).ok());
  arena.Free(*all);
  EXPECT_TRUE(arena.Allocate(1024).ok());
  EXPECT_FALSE(arena.Allocate(SIZE_MAX).ok());
  EXPECT_FALSE(arena.Allocate(SIZE_MAX - 70).ok());
}

// Freed in any order, all of it becomes one piece again.
TEST(ArenaTest, MayExceedItsLimitByARegionWithinIt) {
  Arena arena(1024);
  ASSERT_TRUE(arena.Allocate(1024).ok());
  EXPECT_FALSE(arena.Allocate(512).ok());
  const auto more = arena.Allocate(512, true);
  ASSERT_TRUE(more.ok());
  std::memset(more->data, 1, more->size);
  EXPECT_FALSE(arena.Allocate(2000, true).ok());
  EXPECT_FALSE(arena.Allocate(64).ok());
  arena.Free(*more);
  EXPECT_TRUE(arena.Allocate(64).ok());
}

TEST(ArenaTest, Coalesces) {
  std::minstd_rand random(3);
  Arena arena(kMebibyte);
  for (int round = 0; round < 50; ++round) {
    std::vector<Arena::Region> regions;
    for (int i = 0; i < 20; ++i) {
      const auto region = arena.Allocate(1 + random() % 5000);
      ASSERT_TRUE(region.ok());
      std::memset(region->data, i, region->size);
      regions.push_back(*region);
    }
    std::shuffle(regions.begin(), regions.end(), random);
    for (const Arena::Region& region : regions) arena.Free(region);
    EXPECT_EQ(arena.used_bytes(), 0);
    const auto whole = arena.Allocate(kMebibyte);
    ASSERT_TRUE(whole.ok()) << "in pieces";
    arena.Free(*whole);
  }
}

// Regions that live at once never share a byte.
TEST(ArenaTest, RegionsDoNotOverlap) {
  std::minstd_rand random(4);
  Arena arena(kMebibyte);
  std::vector<std::pair<Arena::Region, int>> live;
  for (int i = 0; i < 2000; ++i) {
    if (live.size() > 30) {
      const size_t at = random() % live.size();
      const auto [region, mark] = live[at];
      for (size_t k = 0; k < region.size; ++k) {
        ASSERT_EQ(region.data[k], static_cast<std::byte>(mark));
      }
      arena.Free(region);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
    const auto region = arena.Allocate(1 + random() % 3000);
    ASSERT_TRUE(region.ok());
    std::memset(region->data, i % 256, region->size);
    live.emplace_back(*region, i % 256);
  }
}

TEST(ArenaTest, DescribesItsSegments) {
  Arena arena(kMebibyte);
  const auto region = *arena.Allocate(100);
  const auto segment = arena.Segment(region.segment);
  ASSERT_TRUE(segment.ok());
  EXPECT_GE(segment->size, region.offset + region.size);
  EXPECT_FALSE(arena.Segment(7).ok());
}

TEST(ArenaTest, ManyThreads) {
  Arena arena(kMebibyte);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&arena, t] {
      for (int i = 0; i < 500; ++i) {
        const auto region = arena.Allocate(100 + t);
        if (!region.ok()) continue;
        std::memset(region->data, t, region->size);
        arena.Free(*region);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena.used_bytes(), 0);
}

}  // namespace
}  // namespace penstock
