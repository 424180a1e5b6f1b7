// Members that come, read, stop, go back and leave at random, while time goes
// by at random: each has exactly what it should.
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/service/worker/productions_testing.h"

namespace penstock::service {
namespace {

using plan_testing::AddConstant;
using plan_testing::Batch;
using plan_testing::Map;
using plan_testing::Range;

constexpr int64_t kRows = 10'000;

struct Trial {
  uint64_t seed = 0;
  Sharing::Policy policy = Sharing::WAIT;
  uint32_t lanes = 0;
  uint32_t members = 3;
};

class ProductionsRandomTest : public ProductionsTest {
 protected:
  // Reads all of it, as member `number`.
  void Play(const Trial& trial, uint32_t number, Member& member) {
    std::mt19937_64 random(trial.seed * 100 + number);
    const uint32_t lane = trial.lanes == 0 ? 0 : number % trial.lanes;
    const auto join = [&] {
      member.frames =
          table_->Join(LeaseOf(number, trial.policy, trial.lanes, lane)).frames;
      Begin();
      member.Attach(member.next);
    };
    join();
    while (!member.has_end) {
      member.Read(1 + static_cast<int>(random() % 4));
      if (member.has_end) break;
      // Time goes by as frames do: else all could be late, for ever.
      Advance(absl::Seconds(static_cast<int64_t>(random() % 20)));
      EXPECT_LE(budget_->used_bytes(), most_bytes_);
      switch (random() % 8) {
        case 0:  // another reader of the same lease
          member.Attach(member.next);
          break;
        case 1:  // nobody reads for a while
          member.frames->Detach(member.bell);
          for (uint64_t i = random() % 300; i > 0; --i) {
            std::this_thread::yield();
          }
          member.Attach(member.next);
          break;
        case 2:  // another lease
          member.frames->Close(absl::NotFoundError("revoked"));
          member.frames.reset();
          join();
          break;
        default:
          break;
      }
    }
    member.frames->Close(absl::NotFoundError("done"));
  }

  std::vector<Member> Run(const Trial& trial) {
    std::vector<Member> members;
    for (uint32_t i = 0; i < trial.members; ++i) {
      members.emplace_back(Productions::Joined());
    }
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < trial.members; ++i) {
      threads.emplace_back([&, i] { Play(trial, i, members[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    return members;
  }

  int64_t most_bytes_ = int64_t{1} << 40;
};

TEST_F(ProductionsRandomTest, WaitGivesEverythingToEveryone) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const int64_t budget = 20'000 << (seed % 4);
    spill_bytes_ = seed % 3 == 0 ? 40'000 << (seed % 2) : 0;
    // A production may always have one frame.
    most_bytes_ = budget + 4 * 140'000;
    Make(Map(Range(kRows), AddConstant(1)), kRows, budget);
    const Texts expected = Expected();
    for (const Member& member : Run({.seed = seed})) {
      ASSERT_EQ(member.items, expected) << seed;
    }
    table_->Close(absl::CancelledError("over"));
  }
}

TEST_F(ProductionsRandomTest, LanesStayInStep) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    spill_bytes_ = seed % 3 == 0 ? 40'000 << (seed % 2) : 0;
    Make(Batch(Map(Range(kRows), AddConstant(1)), 3), kRows,
         20'000 << (seed % 4));
    const Texts expected = Expected(0, /*with_loose=*/false);
    const auto lanes = static_cast<uint32_t>(2 + seed % 2);
    const std::vector<Member> members =
        Run({.seed = seed, .lanes = lanes, .members = 2 * lanes});
    const size_t rounds = expected.size() / lanes;
    for (size_t i = 0; i < members.size(); ++i) {
      ASSERT_EQ(members[i].items.size(), rounds) << seed;
      for (size_t r = 0; r < rounds; ++r) {
        ASSERT_EQ(members[i].items[r], expected[r * lanes + i % lanes]) << seed;
      }
      ASSERT_EQ(members[i].spares.size(), expected.size() % lanes) << seed;
    }
    table_->Close(absl::CancelledError("over"));
  }
}

TEST_F(ProductionsRandomTest, SkipTellsWhatWasMissed) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Make(Map(Range(kRows), AddConstant(1)), kRows, 20'000 << (seed % 4));
    for (const Member& member : Run({.seed = seed, .policy = Sharing::SKIP})) {
      EXPECT_EQ(member.items.size() + member.missed, kRows) << seed;
    }
    table_->Close(absl::CancelledError("over"));
  }
}

}  // namespace
}  // namespace penstock::service
