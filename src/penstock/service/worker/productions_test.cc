#include "penstock/service/worker/productions.h"

#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/service/worker/productions_testing.h"

namespace penstock::service {
namespace {

using plan::Plan;
using plan_testing::AddConstant;
using plan_testing::Batch;
using plan_testing::Map;
using plan_testing::Range;
using plan_testing::Shuffle;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kMany = 100'000;    // 0.8 MB in 20 frames or so
constexpr int64_t kLittle = 600'000;  // bytes: 450 kB for productions
const Plan& ManyNumbers() {
  static const Plan* plan = new Plan(Map(Range(kMany), AddConstant(1)));
  return *plan;
}

TEST_F(ProductionsTest, ManyReadersGetOneComputation) {
  Make(Shuffle(ManyNumbers(), 100), kMany);
  std::vector<Member> members;
  for (uint64_t run = 1; run <= 8; ++run) members.push_back(Join(run));
  for (Member& member : members) member.Attach(0);
  Begin();
  std::vector<std::thread> threads;
  for (Member& member : members) {
    threads.emplace_back([&member] { member.Read(); });
  }
  for (std::thread& thread : threads) thread.join();
  const Texts expected = Expected();
  for (const Member& member : members) {
    EXPECT_EQ(member.items, expected);
    EXPECT_EQ(member.digest, members[0].digest);
    EXPECT_NE(member.digest, 0);
    EXPECT_TRUE(member.frames->is_taken());
  }
  const WorkerReport::Shared report = table_->Report();
  EXPECT_EQ(report.productions(), 1);
  EXPECT_EQ(report.computed(), 1);
  EXPECT_EQ(report.again(), 0);
  EXPECT_EQ(report.evicted_frames(), 0);
  EXPECT_LT(report.sent_again(), report.sent_frames());
  EXPECT_GE(report.sent_again() * 8, report.sent_frames() * 6);
}

TEST_F(ProductionsTest, FramesStayForWhoComesLater) {
  Make(ManyNumbers(), kMany);
  Member first = Join(1);
  Begin();
  first.Attach(0);
  first.Read();
  Leave(first);
  EXPECT_GT(table_->Report().bytes(), 0);
  Member second = Join(2);
  EXPECT_TRUE(second.is_ready) << "there is nothing to compute";
  second.Attach(7);
  second.Read();
  EXPECT_EQ(second.items, Expected(7));
  EXPECT_EQ(table_->Report().computed(), 1);
}

TEST_F(ProductionsTest, TheOldestThatNobodyReadsGoFirstWhenThereIsNoRoom) {
  Make(ManyNumbers(), kMany, kLittle);
  Member first = Join(1);
  Begin();
  first.Attach(0);
  first.Read();
  EXPECT_EQ(first.items, Expected()) << "although it does not all fit";
  EXPECT_LE(table_->Report().bytes(), kLittle);
  EXPECT_EQ(table_->Report().evicted_frames(), 0) << "all who read it had it";
  // A run that is not shared gets what nobody reads.
  Leave(first);
  table_->MakeRoom(int64_t{1} << 30);
  EXPECT_EQ(table_->Report().bytes(), 0);
  EXPECT_EQ(table_->Report().productions(), 0);
  EXPECT_EQ(budget_->used_bytes(), 0);
}

TEST_F(ProductionsTest, WaitWaitsForTheSlowest) {
  Make(ManyNumbers(), kMany, kLittle);
  Member fast = Join(1);
  Member slow = Join(2);
  fast.Attach(0);
  slow.Attach(0);
  Begin();
  stalled_->Await();
  while (fast.HasNext()) {
  }
  EXPECT_FALSE(fast.has_end);
  EXPECT_LE(budget_->used_bytes(), kLittle);
  Advance(absl::Seconds(29));
  EXPECT_FALSE(fast.HasNext());
  // Each that the slow one takes makes room for others.
  std::thread reader([&] { fast.Read(); });
  slow.Read();
  reader.join();
  EXPECT_EQ(fast.items, Expected());
  EXPECT_EQ(slow.items, Expected());
  EXPECT_EQ(table_->Report().computed(), 1);
  EXPECT_EQ(table_->Report().evicted_frames(), 0);
}

TEST_F(ProductionsTest, WhoTakesNothingForLongHasItComputedAgain) {
  Make(ManyNumbers(), kMany, kLittle);
  Member fast = Join(1);
  Member slow = Join(2);
  Member never = Join(3);  // whose reader does not come
  fast.Attach(0);
  slow.Attach(0);
  Begin();
  slow.Read(1);
  stalled_->Await();
  while (fast.HasNext()) {
  }
  Advance(absl::Seconds(31));
  std::thread reader([&] { fast.Read(); });
  reader.join();
  EXPECT_EQ(fast.items, Expected());
  EXPECT_GT(table_->Report().evicted_frames(), 0);
  slow.Read();
  EXPECT_EQ(slow.items, Expected());
  EXPECT_EQ(slow.missed, 0);
  EXPECT_EQ(table_->Report().computed(), 2);
  EXPECT_EQ(table_->Report().again(), 1);
  never.Attach(0);
  never.Read();
  EXPECT_EQ(never.items, Expected());
  EXPECT_LE(budget_->used_bytes(), kLittle);
}

TEST_F(ProductionsTest, WhoIsFarBehindReadsFromDisk) {
  spill_bytes_ = int64_t{64} << 20;
  Make(ManyNumbers(), kMany, kLittle);
  Member fast = Join(1);
  Member slow = Join(2);
  fast.Attach(0);
  slow.Attach(0);
  Begin();
  slow.Read(1);
  fast.Read();
  EXPECT_EQ(fast.items, Expected()) << "although nobody is late";
  EXPECT_GT(spill_->used_bytes(), 0);
  EXPECT_LE(budget_->used_bytes(), kLittle);
  slow.Read();
  EXPECT_EQ(slow.items, Expected());
  EXPECT_EQ(table_->Report().computed(), 1);
  EXPECT_EQ(table_->Report().evicted_frames(), 0);
  EXPECT_EQ(spill_->used_bytes(), 0) << "all have had it";
}

TEST_F(ProductionsTest, AFullDiskIsAsNone) {
  spill_bytes_ = 8192;
  Make(ManyNumbers(), kMany, kLittle);
  Member fast = Join(1);
  Member slow = Join(2);
  fast.Attach(0);
  slow.Attach(0);
  Begin();
  slow.Read(1);
  std::thread reader([&] { fast.Read(); });
  slow.Read();
  reader.join();
  EXPECT_EQ(fast.items, Expected());
  EXPECT_EQ(slow.items, Expected());
  EXPECT_EQ(table_->Report().computed(), 1);
}

TEST_F(ProductionsTest, ALeaseThatNobodyReadsIsNotComputedToItsEnd) {
  Make(ManyNumbers(), kMany, kLittle);
  Member never = Join(1);
  Begin();
  stalled_->Await();
  Advance(absl::Seconds(100));
  EXPECT_EQ(table_->Report().evicted_frames(), 0);
  EXPECT_EQ(table_->Report().computed(), 0);
  never.Attach(0);
  never.Read();
  EXPECT_EQ(never.items, Expected());
}

TEST_F(ProductionsTest, SkipWaitsForNobody) {
  Make(ManyNumbers(), kMany, kLittle);
  Member fast = Join(1, Sharing::SKIP);
  Member slow = Join(2, Sharing::SKIP);
  fast.Attach(0);
  slow.Attach(0);
  Begin();
  fast.Read(1);
  slow.Read(1);
  fast.Read();
  EXPECT_EQ(fast.items, Expected());
  EXPECT_EQ(fast.missed, 0);
  slow.Read();
  EXPECT_TRUE(slow.has_end);
  EXPECT_GT(slow.missed, 0);
  EXPECT_EQ(slow.items.size() + slow.missed, kMany);
  EXPECT_EQ(slow.next, kMany);
  const WorkerReport::Shared report = table_->Report();
  EXPECT_EQ(report.skipped_items(), slow.missed);
  EXPECT_EQ(report.computed(), 1);
  EXPECT_LE(report.bytes(), kLittle);
}

// A trainer that was stopped, or whose network holds everything back: what is
// on its way to it stays in memory.
TEST_F(ProductionsTest, WhatIsOnItsWayToOneThatTakesNothingIsBounded) {
  constexpr int64_t kRows = 30 * kMany;  // 24 MB
  constexpr int64_t kBudget = 10 * kLittle;
  Make(Map(Range(kRows), AddConstant(1)), kRows, kBudget);
  Member fast = Join(1, Sharing::SKIP);
  Member stuck = Join(2, Sharing::SKIP);
  fast.Attach(0);
  stuck.Attach(0);
  Begin();
  std::vector<OutFrame> on_their_way;
  while (!fast.has_end) {
    fast.Read(1);
    auto frame = stuck.frames->Take(stuck.bell);
    ASSERT_TRUE(frame.ok()) << frame.status();
    if (frame->has_value()) on_their_way.push_back(**std::move(frame));
    ASSERT_LE(table_->Report().bytes(), kBudget);
  }
  EXPECT_EQ(fast.items.size() + fast.missed, kRows);
  ASSERT_FALSE(on_their_way.empty());
  ASSERT_FALSE(on_their_way.back().is_end);
  // It goes on.
  for (OutFrame& frame : on_their_way) stuck.Keep(frame);
  on_their_way.clear();
  stuck.Read();
  EXPECT_TRUE(stuck.has_end);
  EXPECT_GT(stuck.missed, 0);
  EXPECT_EQ(stuck.items.size() + stuck.missed, kRows);
}

// One that has stopped keeps what it has, and its share of the room.
TEST_F(ProductionsTest, WhatIsOnItsWayToSeveralThatStopIsBoundedTogether) {
  constexpr int64_t kRows = 120 * kMany;
  constexpr int64_t kBudget = 10 * kLittle;
  Make(Map(Range(kRows), AddConstant(1)), kRows, kBudget);
  Member fast = Join(1, Sharing::SKIP);
  fast.Attach(0);
  Begin();
  std::vector<OutFrame> on_their_way;
  int64_t bytes = 0;
  int64_t largest = 0;
  std::vector<Member> stuck;
  for (uint64_t run = 2; run < 8; ++run) {
    stuck.push_back(Join(run, Sharing::SKIP));
  }
  for (size_t begun = 1; begun <= stuck.size(); ++begun) {
    stuck[begun - 1].Attach(fast.next);
    for (int i = 0; i < 20; ++i) {
      fast.Read(1);
      for (Member& member : std::span(stuck).first(begun)) {
        auto frame = member.frames->Take(member.bell);
        ASSERT_TRUE(frame.ok()) << frame.status();
        if (!frame->has_value()) continue;
        on_their_way.push_back(**std::move(frame));
        const auto size = static_cast<int64_t>(on_their_way.back().bytes);
        bytes += size;
        largest = std::max(largest, size);
      }
    }
    Advance(absl::Seconds(6));
  }
  ASSERT_FALSE(fast.has_end);
  // The first may have all of the room before it is short.
  EXPECT_LE(bytes,
            kBudget / 2 * 3 + static_cast<int64_t>(stuck.size()) * largest);
}

// A trainer that keeps arrays beyond an epoch, or a bundle.
TEST_F(ProductionsTest, WhatIsOnItsWayCountsForTheNextLeaseOfTheRun) {
  constexpr int64_t kRows = 60 * kMany;
  constexpr int64_t kBudget = 10 * kLittle;
  Make(Map(Range(kRows), AddConstant(1)), kRows, kBudget);
  Member fast = Join(1, Sharing::SKIP);
  fast.Attach(0);
  Begin();
  std::vector<OutFrame> kept;
  int64_t bytes = 0;
  int64_t largest = 0;
  for (int lease = 0; lease < 6; ++lease) {
    Member stuck = Join(2, Sharing::SKIP);
    stuck.Attach(fast.next);
    for (int i = 0; i < 20; ++i) {
      fast.Read(1);
      auto frame = stuck.frames->Take(stuck.bell);
      ASSERT_TRUE(frame.ok()) << frame.status();
      if (!frame->has_value()) continue;
      kept.push_back(**std::move(frame));
      const auto size = static_cast<int64_t>(kept.back().bytes);
      bytes += size;
      largest = std::max(largest, size);
    }
    Leave(stuck);
  }
  ASSERT_FALSE(fast.has_end);
  EXPECT_LE(bytes, kBudget + largest);
}

TEST_F(ProductionsTest, SkipBeginsLateAtTheOldestThatIsThere) {
  Make(ManyNumbers(), kMany, kLittle);
  Member first = Join(1, Sharing::SKIP);
  Begin();
  first.Attach(0);
  first.Read();
  Lease lease = LeaseOf(2, Sharing::SKIP);
  lease.mutable_sharing()->set_is_following(true);
  Member late(table_->Join(lease));
  EXPECT_TRUE(late.is_ready);
  late.Attach(0);
  late.Read();
  EXPECT_GT(late.missed, 0);
  EXPECT_EQ(late.items, Expected(late.missed));
}

TEST_F(ProductionsTest, WhatHasGoneIsNotComputedForAFollower) {
  Make(ManyNumbers(), kMany);
  Lease lease = LeaseOf(2, Sharing::SKIP);
  lease.mutable_sharing()->set_is_following(true);
  Member late(table_->Join(lease));
  EXPECT_TRUE(late.is_ready);
  late.Attach(0);
  late.Read();
  EXPECT_TRUE(late.is_gone);
  EXPECT_TRUE(late.frames->is_taken());
  EXPECT_THAT(late.items, IsEmpty());
  EXPECT_EQ(table_->Report().computed(), 0);
}

TEST_F(ProductionsTest, OneOfTwoMayLeave) {
  Make(ManyNumbers(), kMany, kLittle);
  Member one = Join(1);
  Member two = Join(2);
  one.Attach(0);
  two.Attach(0);
  Begin();
  two.Read(1);
  stalled_->Await();
  one.frames->Close(absl::NotFoundError("revoked"));
  EXPECT_EQ(one.Next().status().code(), absl::StatusCode::kNotFound);
  two.Read();
  EXPECT_EQ(two.items, Expected());
}

TEST_F(ProductionsTest, ANewReaderOfALeaseTakesThePlaceOfTheOneBefore) {
  Make(ManyNumbers(), kMany);
  Member one = Join(1);
  Member two = Join(2);
  one.Attach(0);
  two.Attach(0);
  Begin();
  one.Read(3);
  const std::shared_ptr<Bell> before = one.bell;
  one.Attach(one.next);
  EXPECT_EQ(one.frames->Take(before).status().code(),
            absl::StatusCode::kAborted);
  one.Read();
  two.Read();
  EXPECT_EQ(one.items, Expected());
  EXPECT_EQ(two.items, Expected());
  EXPECT_EQ(table_->Report().computed(), 1);
}

TEST_F(ProductionsTest, BeginsWhereItsReadersDo) {
  Make(ManyNumbers(), kMany);
  Member one = Join(1);
  one.Attach(75'000);
  Begin();
  const auto frame = one.Next();
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->position, 75'000) << "nothing was computed before";
  // Who is before that has its own.
  Member two = Join(2);
  two.Attach(50'000);
  two.Read();
  EXPECT_EQ(two.items, Expected(50'000));
  one.Keep(*frame);
  one.Read();
  EXPECT_EQ(one.items, Expected(75'000));
}

TEST_F(ProductionsTest, GoesOnFromWhereItStopped) {
  Make(ManyNumbers(), kMany, kLittle);
  Member one = Join(1);
  one.Attach(0);
  Begin();
  one.Read(3);
  stalled_->Await();
  Leave(one);
  Member two = Join(2);
  EXPECT_FALSE(two.is_ready);
  Begin();
  two.Attach(0);
  two.Read();
  EXPECT_EQ(two.items, Expected());
  EXPECT_NE(two.digest, 0);
}

TEST_F(ProductionsTest, AFailureIsEveryReadersAndIsTriedAgain) {
  Make(ManyNumbers(), kMany);
  RunSetup wrong = setup_;
  wrong.part.node = 99;
  Member one = Join(1);
  Member two = Join(2);
  one.Attach(0);
  two.Attach(0);
  table_->Begin(kProduction, wrong);
  EXPECT_EQ(one.Next().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(two.Next().status().code(), absl::StatusCode::kInvalidArgument);
  Begin();
  one.Attach(0);
  one.Read();
  EXPECT_EQ(one.items, Expected());
  Member three = Join(3);
  table_->Begin(kProduction, absl::NotFoundError("no plan"));
  three.Attach(0);
  three.Read();
  EXPECT_EQ(three.items, Expected()) << "it was computed before";
}

// Lanes' items put together again, round by round.
Texts Together(const std::vector<Member>& lanes) {
  Texts items;
  for (size_t r = 0; r < lanes[0].items.size(); ++r) {
    for (const Member& lane : lanes) items.push_back(lane.items.at(r));
  }
  return items;
}

TEST_F(ProductionsTest, LanesHaveOneItemOfEachRound) {
  Make(Batch(Shuffle(Map(Range(50'003), AddConstant(1)), 50), 7), 50'003);
  std::vector<Member> lanes;
  for (uint32_t lane = 0; lane < 3; ++lane) {
    lanes.push_back(Join(lane + 1, Sharing::WAIT, 3, lane));
  }
  Begin();
  for (Member& lane : lanes) lane.Attach(0);
  for (Member& lane : lanes) lane.Read();
  Texts expected = Expected(0, /*with_loose=*/false);
  ASSERT_EQ(expected.size(), 50'003 / 7);
  const size_t spares = expected.size() % 3;
  Texts together = Together(lanes);
  EXPECT_EQ(together.size(), expected.size() - spares);
  for (const Member& lane : lanes) {
    EXPECT_THAT(lane.spares, SizeIs(spares));
    EXPECT_EQ(lane.spares, lanes[0].spares);
    EXPECT_THAT(lane.loose, SizeIs(50'003 % 7));
    EXPECT_EQ(lane.digest, lanes[0].digest);
  }
  together.insert(together.end(), lanes[0].spares.begin(),
                  lanes[0].spares.end());
  EXPECT_EQ(together, expected);
  EXPECT_EQ(table_->Report().computed(), 1);
  // The digest is that of the items, in whatever rounds.
  const uint64_t digest = lanes[0].digest;
  for (Member& lane : lanes) Leave(lane);
  table_->MakeRoom(int64_t{1} << 30);
  Member all = Join(9);
  Begin();
  all.Attach(0);
  all.Read();
  EXPECT_EQ(all.digest, digest);
}

TEST_F(ProductionsTest, LanesGoOnWhereTheyWere) {
  Make(Batch(Map(Range(kMany), AddConstant(1)), 3), kMany, kLittle);
  std::vector<Member> lanes;
  for (uint32_t lane = 0; lane < 2; ++lane) {
    lanes.push_back(Join(lane + 1, Sharing::WAIT, 2, lane));
  }
  Begin();
  for (Member& lane : lanes) lane.Attach(0);
  for (int i = 0; i < 3; ++i) {
    for (Member& lane : lanes) lane.Read(1);
  }
  // All leave, and come back where they were.
  for (Member& lane : lanes) {
    lane.frames->Close(absl::NotFoundError("revoked"));
  }
  for (uint32_t i = 0; i < 2; ++i) {
    lanes[i].frames = Join(i + 1, Sharing::WAIT, 2, i).frames;
  }
  Begin();
  for (Member& lane : lanes) lane.Attach(lane.next);
  std::thread other([&] { lanes[0].Read(); });
  lanes[1].Read();
  other.join();
  EXPECT_EQ(lanes[0].digest, lanes[1].digest);
  Texts together = Together(lanes);
  together.insert(together.end(), lanes[0].spares.begin(),
                  lanes[0].spares.end());
  EXPECT_EQ(together, Expected(0, /*with_loose=*/false));
}

TEST_F(ProductionsTest, ALaneThatIsFarBehindIsComputedAgain) {
  // More than what two frames may hold, however large they come.
  constexpr int64_t kRows = 8 * kMany;
  Make(Batch(Map(Range(kRows), AddConstant(1)), 4), kRows, kLittle);
  Member one = Join(1, Sharing::WAIT, 2, 0);
  Member two = Join(2, Sharing::WAIT, 2, 1);
  Begin();
  one.Attach(0);
  two.Attach(0);
  two.Read(2);
  stalled_->Await();
  while (one.HasNext()) {
  }
  Advance(absl::Seconds(31));
  one.Read();
  two.Read();
  std::vector<Member> lanes;
  lanes.push_back(std::move(one));
  lanes.push_back(std::move(two));
  EXPECT_EQ(Together(lanes), Expected(0, /*with_loose=*/false));
  EXPECT_EQ(table_->Report().again(), 1);
}

// Three go on with what two had begun.
TEST_F(ProductionsTest, WhatOthersHadBegunInRoundsGoesToAll) {
  Make(Batch(Map(Range(50'003), AddConstant(1)), 7), 50'003);
  const Texts expected = Expected(0, /*with_loose=*/false);
  const uint64_t rounds = expected.size() / 2;
  for (const uint64_t had : {uint64_t{1}, uint64_t{100}, rounds - 1, rounds}) {
    std::vector<Member> lanes;
    for (uint32_t lane = 0; lane < 3; ++lane) {
      Lease lease = LeaseOf(10 * had + lane, Sharing::WAIT, 3, lane);
      lease.mutable_sharing()->set_production(kProduction + had);
      Split& split = *lease.mutable_sharing()->mutable_split();
      split.set_lanes(2);
      split.set_position(had);
      lanes.emplace_back(table_->Join(lease));
    }
    table_->Begin(kProduction + had, setup_);
    for (Member& lane : lanes) lane.Attach(had);
    for (Member& lane : lanes) lane.Read();
    for (const Member& lane : lanes) {
      EXPECT_THAT(lane.items, IsEmpty());
      EXPECT_EQ(lane.missed, 0);
      EXPECT_EQ(lane.spares,
                Texts(expected.begin() + static_cast<std::ptrdiff_t>(2 * had),
                      expected.end()));
      EXPECT_THAT(lane.loose, SizeIs(50'003 % 7));
    }
    // One of them goes on in the middle of it.
    Lease lease = LeaseOf(5, Sharing::WAIT, 3, 1);
    lease.mutable_sharing()->set_production(kProduction + had);
    lease.mutable_sharing()->mutable_split()->set_lanes(2);
    lease.mutable_sharing()->mutable_split()->set_position(had);
    Member back(table_->Join(lease));
    back.Attach(had + 1);
    back.Read();
    EXPECT_THAT(back.spares, SizeIs(expected.size() - 2 * had -
                                    (2 * had < expected.size() ? 1 : 0)));
  }
  EXPECT_EQ(table_->Report().computed(), 4);
}

TEST_F(ProductionsTest, ALaneThatThereIsNotIsRefused) {
  Make(ManyNumbers(), kMany);
  Member member = Join(1, Sharing::WAIT, 2, 2);
  member.Attach(0);
  EXPECT_EQ(member.Next().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ProductionsTest, ErrorsAreItemsOfRounds) {
  Make(Map(Range(100), engine_testing::FailsWhere(10, 3)), 100);
  std::vector<Member> lanes;
  for (uint32_t lane = 0; lane < 2; ++lane) {
    lanes.push_back(Join(lane + 1, Sharing::WAIT, 2, lane));
  }
  Begin();
  for (Member& lane : lanes) lane.Attach(0);
  for (Member& lane : lanes) lane.Read();
  EXPECT_EQ(Together(lanes), Expected());
  EXPECT_EQ(lanes[1].items[6], engine_testing::FailureText());
}

}  // namespace
}  // namespace penstock::service
