#include "penstock/service/dispatcher/epoch_state.h"

#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::service {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kWorker = 100;
constexpr uint64_t kOther = 200;

class EpochStateTest : public testing::Test {
 protected:
  void Begin(uint64_t bundles, EpochState::Settings settings = {},
             const Progress& inherited = {}) {
    EpochId id;
    id.set_run(1);
    id.set_generation(1);
    state_.emplace(id, settings, inherited);
    state_->SetBundles(bundles);
  }
  std::optional<EpochState::Given> Grant(uint64_t worker = kWorker) {
    return state_->Grant(worker, ++attempt_, true, writes_);
  }
  bool Finish(uint32_t slot, uint64_t bundle) {
    Finished finished;
    finished.set_bundle(bundle);
    finished.set_items(3);
    return state_->Finish(slot, finished, writes_);
  }

  std::optional<EpochState> state_;
  Writes writes_;
  uint64_t attempt_ = 0;
};

TEST_F(EpochStateTest, NobodyGetsWhatNobodyWants) {
  Begin(3);
  EXPECT_EQ(Grant(), std::nullopt);
  state_->SetWant(0, 2);
  EXPECT_EQ(Grant()->bundle, 0);
  EXPECT_EQ(Grant()->bundle, 1);
  EXPECT_EQ(Grant(), std::nullopt) << "it has two already";
  EXPECT_THAT(writes_.durable, SizeIs(2)) << "owners are written down";
  EXPECT_THAT(writes_.lazy, IsEmpty());
}

TEST_F(EpochStateTest, TheHungriestComesFirst) {
  Begin(4);
  state_->SetWant(0, 1);
  state_->SetWant(1, 3);
  EXPECT_EQ(Grant()->slot, 1);
  EXPECT_EQ(Grant()->slot, 1);
  EXPECT_EQ(Grant()->slot, 0);
  EXPECT_EQ(Grant()->slot, 1);
}

TEST_F(EpochStateTest, InOrderTheNumberSaysWhose) {
  Begin(5, {.is_ordered = true, .slots = 2});
  state_->SetWant(1, 9);
  EXPECT_EQ(Grant()->bundle, 1) << "the first is the other's";
  state_->SetWant(0, 9);
  for (const uint64_t bundle : {0, 2, 3, 4}) {
    const auto given = Grant();
    EXPECT_EQ(given->bundle, bundle);
    EXPECT_EQ(given->slot, bundle % 2);
  }
}

// Restored by another number of consumers: what they had open is not first.
TEST_F(EpochStateTest, InOrderTheLeastComesFirst) {
  Progress inherited;
  inherited.done.AddRun(0, 3);
  inherited.open[4] = 1;
  inherited.open[6] = 2;
  Begin(8, {.is_ordered = true}, inherited);
  state_->SetWant(0, 3);
  EXPECT_EQ(Grant()->bundle, 3);
  EXPECT_EQ(Grant()->bundle, 4);
  EXPECT_EQ(Grant()->bundle, 5);
}

// Whatever becomes of workers, it stays with the consumer that may have had
// some of it.
TEST_F(EpochStateTest, AnOwnerStays) {
  Begin(1, {.max_crashes = 9});
  state_->SetWant(0, 1);
  Grant();
  state_->SetWant(1, 9);
  for (int i = 0; i < 3; ++i) {
    state_->LoseWorker(kWorker, writes_);
    const auto given = Grant();
    ASSERT_TRUE(given.has_value());
    EXPECT_EQ(given->slot, 0);
  }
  EXPECT_THAT(writes_.durable, SizeIs(1));
}

TEST_F(EpochStateTest, OnlyItsOwnerFinishesIt) {
  Begin(1);
  state_->SetWant(0, 1);
  Grant();
  EXPECT_FALSE(Finish(1, 0));
  EXPECT_FALSE(state_->is_done());
  EXPECT_TRUE(Finish(0, 0));
  EXPECT_TRUE(state_->is_done());
  EXPECT_TRUE(Finish(0, 0)) << "said again";
  EXPECT_EQ(state_->mismatches(), 0);
}

TEST_F(EpochStateTest, AnotherEndingIsNoticed) {
  Begin(1);
  state_->SetWant(0, 1);
  Grant();
  Finish(0, 0);
  Finished other;
  other.set_items(4);
  state_->Finish(0, other, writes_);
  EXPECT_EQ(state_->mismatches(), 1);
}

TEST_F(EpochStateTest, AReleasedOneGoesOnWhereItWasLeft) {
  Begin(1);
  state_->SetWant(0, 1);
  Grant();
  Cursor cursor;
  cursor.set_position(7);
  state_->Release(1, cursor, writes_);  // not its own
  EXPECT_THAT(state_->OwnedBy(0), SizeIs(1));
  state_->Release(0, cursor, writes_);
  state_->SetWant(0, 0);
  state_->SetWant(1, 1);
  EXPECT_EQ(Grant()->slot, 1);
  EXPECT_EQ(state_->OwnedBy(1)[0].from, 7);
}

TEST_F(EpochStateTest, NothingIsLeftWhenTheRestIsOthers) {
  Begin(2);
  state_->SetWant(0, 1);
  state_->SetWant(1, 1);
  Grant();
  EXPECT_FALSE(state_->HasNothingFor(0, {}));
  EXPECT_FALSE(state_->HasNothingFor(1, {}));
  Grant();
  Finish(0, 0);
  Finish(0, 1);
  EXPECT_EQ(state_->HasNothingFor(0, {}), state_->OwnedBy(0).empty());
  EXPECT_FALSE(state_->is_done());
}

TEST_F(EpochStateTest, WhoCannotBeReadFromIsAvoided) {
  Begin(1);
  state_->SetWant(0, 1);
  const auto given = Grant();
  state_->ReportBad(0, 0, given->attempt + 1, false,
                    writes_);  // another attempt's
  EXPECT_EQ(Grant(kOther), std::nullopt);
  state_->ReportBad(0, 0, given->attempt, false, writes_);
  EXPECT_EQ(Grant(kWorker), std::nullopt);
  EXPECT_FALSE(state_->Present(kWorker, 0, given->attempt, true));
  EXPECT_EQ(Grant(kOther)->bundle, 0);
}

// Nobody else may have room, ever.
TEST_F(EpochStateTest, WhoIsAvoidedGetsItInTheEnd) {
  Begin(1);
  state_->SetWant(0, 1);
  state_->ReportBad(0, 0, Grant()->attempt, false, writes_);
  int tries = 1;
  while (!Grant()) ASSERT_LT(++tries, 10);
  EXPECT_GT(tries, 1);
}

TEST_F(EpochStateTest, WhatKillsEveryWorkerIsGivenUp) {
  Begin(1, {.max_crashes = 3});
  state_->SetWant(0, 1);
  for (int i = 0; i < 3; ++i) {
    const auto given = Grant();
    ASSERT_TRUE(given.has_value()) << i;
    state_->Present(kWorker, 0, given->attempt, true);
    state_->LoseWorker(kWorker, writes_);
  }
  EXPECT_THAT(state_->quarantined(), SizeIs(1));
  EXPECT_TRUE(state_->is_done());
}

TEST_F(EpochStateTest, WhatWaitsForItsReaderIsNotWhatWorkersDieOf) {
  Begin(1, {.max_crashes = 3});
  state_->SetWant(0, 1);
  for (int i = 0; i < 9; ++i) {
    const auto given = Grant();
    ASSERT_TRUE(given.has_value()) << i;
    state_->Present(kWorker, 0, given->attempt, true);
    state_->Present(kWorker, 0, given->attempt, true, /*is_waiting=*/true);
    state_->LoseWorker(kWorker, writes_);
  }
  EXPECT_THAT(state_->quarantined(), IsEmpty());
  // Read on, it is computed again.
  for (int i = 0; i < 3; ++i) {
    const auto given = Grant();
    ASSERT_TRUE(given.has_value()) << i;
    state_->Present(kWorker, 0, given->attempt, true, /*is_waiting=*/true);
    state_->Present(kWorker, 0, given->attempt, true);
    state_->LoseWorker(kWorker, writes_);
  }
  EXPECT_THAT(state_->quarantined(), SizeIs(1));
}

TEST_F(EpochStateTest, OneThatWasNotBegunIsNotToBlame) {
  Begin(1, {.max_crashes = 1});
  state_->SetWant(0, 1);
  Grant();
  state_->LoseWorker(kWorker, writes_);
  EXPECT_THAT(state_->quarantined(), IsEmpty());
}

TEST_F(EpochStateTest, AtMostOnceIsNotTriedAgain) {
  Begin(2, {.visitation = AT_MOST_ONCE});
  state_->SetWant(0, 2);
  const auto begun = Grant();
  Grant();
  state_->Present(kWorker, 0, begun->attempt, true);
  state_->LoseWorker(kWorker, writes_);
  EXPECT_EQ(state_->dropped(), 1);
  EXPECT_EQ(Grant()->bundle, 1);
}

// Its worker may have given it back as it drained, before it was read.
TEST_F(EpochStateTest, AtMostOnceWhatNobodyHadIsTriedElsewhere) {
  Begin(2, {.visitation = AT_MOST_ONCE});
  state_->SetWant(0, 2);
  const auto unread = Grant();
  const auto begun = Grant();
  state_->Present(kWorker, 0, unread->attempt, true);
  state_->Present(kWorker, 1, begun->attempt, true);
  state_->ReportBad(0, 0, unread->attempt, true, writes_);
  state_->ReportBad(0, 1, begun->attempt, false, writes_);
  EXPECT_EQ(state_->dropped(), 1);
  EXPECT_TRUE(state_->done().Has(1));
  EXPECT_EQ(Grant(kOther)->bundle, 0);
}

TEST_F(EpochStateTest, WhatWasInheritedIsNotGivenAgain) {
  Progress inherited;
  inherited.done.AddRun(0, 2);
  inherited.open[3] = 5;
  Begin(4, {}, inherited);
  state_->SetWant(0, 9);
  EXPECT_EQ(Grant()->bundle, 2);
  EXPECT_EQ(Grant()->bundle, 3);
  EXPECT_EQ(state_->OwnedBy(0)[1].from, 5);
  EXPECT_EQ(Grant(), std::nullopt);
}

// After a restart, who held a bundle may say so; until then others wait.
TEST_F(EpochStateTest, AfterARestartTheHolderComesFirst) {
  Begin(2);
  BindRecord bind;
  bind.set_slot(0);
  state_->Recover(0, bind);
  state_->SetWant(0, 2);
  EXPECT_EQ(state_->Grant(kOther, 1, false, writes_)->bundle, 1);
  EXPECT_TRUE(state_->Present(kWorker, 0, 77, true));
  EXPECT_FALSE(state_->Present(kOther, 0, 78, true));
  EXPECT_EQ(state_->HeldBy(kWorker)[0].attempt, 77);
}

// The other reader may be about to come.
TEST_F(EpochStateTest, ALoneReaderOfSeveralHoldsItsShare) {
  Begin(100, {.slots = 2});
  std::set<uint64_t> complete;
  while (true) {
    state_->SetWant(0, 100, complete);
    const auto given = Grant();
    if (!given) break;
    complete.insert(given->bundle);
  }
  EXPECT_EQ(complete.size(), 20) << "as many as a quarter of what is left";
  // Its pipeline holds them back, and wants more.
  state_->SetWant(0, 100, complete, 20);
  EXPECT_NE(Grant(), std::nullopt);
  // Nobody else comes any more.
  state_->SetWant(0, 100, complete);
  while (Grant()) {
  }
  const size_t before = state_->OwnedBy(0).size();
  EXPECT_LT(before, 25);
  state_->SetGone(1);
  while (Grant()) {
  }
  EXPECT_EQ(state_->OwnedBy(0).size(), 100);
}

TEST_F(EpochStateTest, WhatAReaderHasAsAWholeIsNotComputedAgain) {
  Begin(1);
  state_->SetWant(0, 2);
  const auto given = Grant();
  state_->SetWant(0, 2, {0});
  state_->Lose(kWorker, 0, given->attempt, EpochState::Loss::kGivenBack,
               writes_);
  EXPECT_EQ(Grant(kOther), std::nullopt);
  // Another engine has nothing of it.
  state_->SetWant(0, 2);
  EXPECT_EQ(Grant(kOther)->bundle, 0);
}

}  // namespace
}  // namespace penstock::service
