#include <optional>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/service/dispatcher/epoch_state.h"

namespace penstock::service {
namespace {

constexpr uint64_t kFirst = 100;
constexpr uint64_t kSecond = 200;
constexpr uint64_t kThird = 300;

class EpochByWorkerTest : public testing::Test {
 protected:
  void Begin(Visitation visitation, std::optional<uint64_t> bundles,
             uint32_t slots = 1, const Progress& inherited = {}) {
    EpochId id;
    id.set_run(1);
    id.set_generation(1);
    EpochState::Settings settings;
    settings.visitation = visitation;
    settings.slots = slots;
    state_.emplace(id, settings, inherited);
    state_->SetBundles(bundles);
    for (uint32_t slot = 0; slot < slots; ++slot) state_->SetWant(slot, 8);
  }
  std::optional<EpochState::Given> Grant(
      uint64_t worker, std::optional<uint64_t> place = std::nullopt) {
    return state_->Grant(worker, ++attempt_, true, writes_, place);
  }
  bool Finish(uint32_t slot, uint64_t bundle) {
    Finished finished;
    finished.set_bundle(bundle);
    finished.set_items(3);
    return state_->Finish(slot, finished, writes_);
  }
  bool IsOver(uint32_t slot = 0) const {
    return state_->HasNothingFor(slot, {});
  }

  std::optional<EpochState> state_;
  Writes writes_;
  uint64_t attempt_ = 0;
};

TEST_F(EpochByWorkerTest, AStaticShardIsForItsWorkerAlone) {
  Begin(STATIC, 2);
  EXPECT_EQ(Grant(kThird), std::nullopt) << "it is none of them";
  EXPECT_EQ(Grant(kThird, 2), std::nullopt);
  const auto second = Grant(kSecond, 1);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->bundle, 1);
  EXPECT_EQ(Grant(kSecond, 1), std::nullopt) << "it has what is its own";
  state_->LoseWorker(kSecond, writes_);
  EXPECT_EQ(Grant(kFirst, 0)->bundle, 0);
  EXPECT_EQ(Grant(kFirst, 0), std::nullopt) << "not the other's";
  EXPECT_FALSE(IsOver());
  EXPECT_TRUE(Finish(0, 0));
  EXPECT_FALSE(IsOver()) << "the other's waits for one at its address";
  EXPECT_EQ(Grant(kThird, 1)->bundle, 1);
  EXPECT_TRUE(Finish(0, 1));
  EXPECT_TRUE(IsOver());
  EXPECT_EQ(state_->dropped(), 0);
}

TEST_F(EpochByWorkerTest, ReadersHaveWorkersInTurn) {
  Begin(STATIC, 4, 2);
  for (uint64_t place = 0; place < 4; ++place) {
    EXPECT_EQ(Grant(kFirst + place, place)->slot, place % 2);
  }
  Finish(0, 0);
  Finish(0, 2);
  EXPECT_TRUE(IsOver(0));
  EXPECT_FALSE(IsOver(1));
  Cursor cursor;
  cursor.set_bundle(3);
  cursor.set_position(5);
  state_->Release(1, cursor, writes_);
  state_->SetWant(1, 0);
  EXPECT_FALSE(IsOver(0)) << "what one gives back is there for others";
  const auto again = Grant(kFirst + 3, 3);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->slot, 0);
  EXPECT_EQ(state_->OwnedBy(0)[0].from, 5);
}

TEST_F(EpochByWorkerTest, WhoHasLeftWillReadNothing) {
  Begin(STATIC, 2, 2);
  EXPECT_EQ(Grant(kFirst, 0)->slot, 0);
  state_->ReleaseRest(1, BundleSet(), writes_);
  state_->SetWant(1, 0);
  EXPECT_TRUE(Finish(0, 0));
  EXPECT_FALSE(IsOver(0));
  EXPECT_EQ(Grant(kSecond, 1)->slot, 0);
}

TEST_F(EpochByWorkerTest, EachWorkerHasAPass) {
  Begin(EACH_WORKER, std::nullopt);
  EXPECT_FALSE(IsOver()) << "nobody has come yet";
  EXPECT_EQ(Grant(kFirst), std::nullopt);
  state_->Join(kFirst);
  state_->Join(kSecond);
  EXPECT_EQ(Grant(kSecond)->bundle, 1);
  EXPECT_EQ(Grant(kSecond), std::nullopt);
  EXPECT_EQ(Grant(kFirst)->bundle, 0);
  EXPECT_TRUE(Finish(0, 0));
  EXPECT_EQ(Grant(kFirst), std::nullopt) << "it has had its pass";
  state_->Join(kFirst);
  EXPECT_EQ(Grant(kFirst), std::nullopt);
  EXPECT_FALSE(IsOver());
  state_->Join(kThird);
  EXPECT_TRUE(Finish(0, 1));
  EXPECT_FALSE(IsOver()) << "one that has come later begins its own";
  EXPECT_EQ(Grant(kThird)->bundle, 2);
  EXPECT_TRUE(Finish(0, 2));
  EXPECT_TRUE(IsOver());
}

TEST_F(EpochByWorkerTest, APassEndsWithItsWorker) {
  Begin(EACH_WORKER, std::nullopt);
  state_->Join(kFirst);
  state_->Join(kSecond);
  const auto given = Grant(kFirst);
  ASSERT_TRUE(given.has_value());
  state_->LoseWorker(kFirst, writes_);
  state_->Retire(kFirst, writes_);
  EXPECT_EQ(state_->dropped(), 1);
  EXPECT_FALSE(state_->Present(kFirst, given->bundle, given->attempt, true));
  state_->Join(kFirst);
  EXPECT_EQ(Grant(kFirst), std::nullopt) << "nor does it begin another";
  EXPECT_FALSE(IsOver());
  state_->Retire(kSecond, writes_);
  EXPECT_EQ(state_->dropped(), 1) << "nothing had come of it";
  EXPECT_TRUE(IsOver());
}

TEST_F(EpochByWorkerTest, WhatCannotBeReadIsTriedAgainThere) {
  Begin(EACH_WORKER, std::nullopt);
  state_->Join(kFirst);
  const auto given = Grant(kFirst);
  state_->ReportBad(0, given->bundle, given->attempt, false, writes_);
  EXPECT_EQ(state_->dropped(), 0);
  EXPECT_EQ(Grant(kFirst)->bundle, given->bundle);
}

TEST_F(EpochByWorkerTest, ARestartKnowsWhoHasHadAPass) {
  Begin(EACH_WORKER, std::nullopt);
  DoneRecord done;
  done.set_worker(kFirst);
  BindRecord bind;
  bind.set_slot(0);
  bind.set_worker(kSecond);
  state_->Recover(0, done);
  state_->Recover(1, bind);
  state_->Join(kFirst);
  EXPECT_EQ(Grant(kFirst), std::nullopt);
  state_->Join(kSecond);
  EXPECT_EQ(Grant(kSecond)->bundle, 1);
  state_->Join(kThird);
  EXPECT_EQ(Grant(kThird)->bundle, 2);
}

TEST_F(EpochByWorkerTest, PassesOfACheckpointAreGoneOnWith) {
  Progress inherited;
  inherited.done.Add(0);
  inherited.open[1] = 7;
  inherited.open[2] = 3;
  Begin(EACH_WORKER, std::nullopt, 1, inherited);
  state_->Join(kFirst);
  EXPECT_EQ(Grant(kFirst)->bundle, 1);
  EXPECT_EQ(state_->OwnedBy(0)[0].from, 7);
  EXPECT_EQ(Grant(kFirst), std::nullopt) << "one at a time";
  EXPECT_TRUE(Finish(0, 1));
  EXPECT_FALSE(IsOver()) << "there is one more";
  EXPECT_EQ(Grant(kFirst)->bundle, 2);
  state_->Join(kSecond);
  state_->Join(kThird);
  EXPECT_EQ(Grant(kSecond), std::nullopt) << "three had come, and three have";
  EXPECT_EQ(Grant(kThird), std::nullopt);
  state_->Join(kThird + 1);
  EXPECT_EQ(Grant(kThird + 1)->bundle, 3);
}

// A state may be older than the first rows of some.
TEST_F(EpochByWorkerTest, PassesThatACheckpointDoesNotKnowBeginAnew) {
  Progress inherited;
  inherited.open[1] = 7;
  Begin(EACH_WORKER, std::nullopt, 1, inherited);
  state_->Join(kFirst);
  state_->Join(kSecond);
  EXPECT_EQ(Grant(kFirst)->bundle, 1);
  EXPECT_EQ(Grant(kSecond)->bundle, 2);
}

}  // namespace
}  // namespace penstock::service
