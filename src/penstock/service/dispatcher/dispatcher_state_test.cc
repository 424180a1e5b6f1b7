#include "penstock/service/dispatcher/dispatcher_state.h"

#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/service/dispatcher/dispatcher_state_testing.h"

namespace penstock::service {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(DispatcherStateTest, OneEpoch) {
  const OpenReply opened = OpenEpoch(2);
  EXPECT_THAT(Beat(opened, 8).assigned(), IsEmpty());
  const WorkerReply granted = Beat();
  ASSERT_EQ(granted.leases_size(), 2);
  const ClientReply reply = Beat(opened, 8);
  ASSERT_EQ(reply.assigned_size(), 2);
  EXPECT_EQ(reply.assigned(0).address(), "w9");
  EXPECT_EQ(Beat(opened, 8, {0}).phase(), ClientReply::OPEN);
  EXPECT_EQ(Beat(opened, 8, {1}).phase(), ClientReply::NOTHING_LEFT);
  // What is done need not be held.
  WorkerBeat beat;
  for (const Lease& lease : granted.leases()) {
    WorkerBeat::Held* held = beat.add_held();
    *held->mutable_epoch() = lease.epoch();
    held->set_bundle(lease.bundle());
    held->set_attempt(lease.attempt());
  }
  EXPECT_THAT(Beat(beat).revoked(), SizeIs(2));
}

TEST_F(DispatcherStateTest, AReplyThatWasLostIsGivenAgain) {
  const OpenReply opened = OpenEpoch(1);
  Beat(opened, 8);
  const Lease lease = Beat().leases(0);
  const Lease again = Beat().leases(0);
  EXPECT_EQ(lease.attempt(), again.attempt());
}

TEST_F(DispatcherStateTest, ARestartForgetsNothingThatItTold) {
  const OpenReply opened = OpenEpoch(3);
  Beat(opened, 2);
  const WorkerReply granted = Beat();
  Beat(opened, 2, {0});
  Restart();
  EXPECT_EQ(Beat(opened, 2).phase(), ClientReply::OPEN);
  // Bundle 1 is its holder's until the time is over; bundle 2 is anybody's.
  const WorkerReply after = Beat();
  ASSERT_EQ(after.leases_size(), 1);
  EXPECT_EQ(after.leases(0).bundle(), 2);
  WorkerBeat beat;
  WorkerBeat::Held* held = beat.add_held();
  *held->mutable_epoch() = granted.leases(1).epoch();
  held->set_bundle(1);
  held->set_attempt(granted.leases(1).attempt());
  EXPECT_THAT(Beat(beat).revoked(), IsEmpty());
  EXPECT_EQ(Beat(opened, 2).assigned_size(), 2);
}

// Not even for somebody who comes after a restart: the one who reads is alive.
TEST_F(DispatcherStateTest, ARestartKeepsTheName) {
  const OpenReply opened = OpenEpoch(2);
  Beat(opened, 2);
  Beat();
  Beat(opened, 2, {0});
  Restart();
  EXPECT_EQ(Open(Request(2)).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Open(Request(1))->epoch().run(), opened.epoch().run()) << "a retry";
  now_ += DispatcherState::Settings().client_timeout_ms;
  const auto reply = Open(Request(3));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_NE(reply->epoch().run(), opened.epoch().run())
      << "nobody reads on in what another one had";
}

// Those who do not share say nothing of rows.
TEST_F(DispatcherStateTest, OnlyAMembersRowsAreSaid) {
  OpenEpoch(2);
  State seen;
  state_->Describe(now_, seen);
  ASSERT_EQ(seen.jobs(0).epochs(0).consumers_size(), 1);
  EXPECT_FALSE(seen.jobs(0).epochs(0).consumers(0).has_row());
}

TEST_F(DispatcherStateTest, ANewerSessionWins) {
  const OpenReply first = OpenEpoch(1);
  OpenRequest request = Request(2);
  const absl::Status refused = Open(request).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("on_existing=\"attach\""),
                    HasSubstr("on_existing=\"fresh\"")));
  request.set_on_existing(OpenRequest::ATTACH);
  const auto second = Open(request);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Beat(first, 1).phase(), ClientReply::FENCED);
  EXPECT_EQ(Beat(*second, 1, {}, 2).phase(), ClientReply::OPEN);
}

// An engine that died had asked; its message comes after its successor's.
TEST_F(DispatcherStateTest, AnOpeningThatComesLateIsNotHeard) {
  OpenEpoch(1);
  OpenRequest request = Request(1);
  request.mutable_opener()->set_request(2);
  request.set_on_existing(OpenRequest::ATTACH);
  EXPECT_TRUE(Open(request).ok());
  request.mutable_opener()->set_request(1);
  EXPECT_EQ(Open(request).status().code(), absl::StatusCode::kAborted);
}

TEST_F(DispatcherStateTest, AnotherPipelineUnderTheSameNameIsRefused) {
  OpenEpoch(1);
  state_->AddPlan("q", "other", false, now_, writes_);
  OpenRequest request = Request(2);
  request.set_plan("q");
  const auto reply = Open(request);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(reply.status().message(), HasSubstr("another pipeline"));
  request.set_on_existing(OpenRequest::FRESH);
  EXPECT_TRUE(Open(request).ok());
}

TEST_F(DispatcherStateTest, WhenAllHaveLeftANameIsFree) {
  const OpenReply opened = OpenEpoch(1);
  ReleaseRequest release;
  *release.mutable_epoch() = opened.epoch();
  release.mutable_opener()->set_consumer(1);
  ASSERT_TRUE(state_->Release(release, now_, writes_).ok());
  const auto reply = Open(Request(2));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_NE(reply->epoch().run(), opened.epoch().run());
}

// The first consumer that is back must not throw away the others' progress.
TEST_F(DispatcherStateTest, ARestoreWaitsForAllStates) {
  const OpenReply opened = OpenEpoch(4);
  std::vector<OpenRequest> requests;
  for (uint32_t slot = 0; slot < 2; ++slot) {
    requests.push_back(Restoring(opened, slot, 10 + slot));
  }
  EXPECT_EQ(Open(requests[0])->phase(), OpenReply::WAITING);
  EXPECT_EQ(Beat(opened, 1).phase(), ClientReply::OPEN) << "not yet";
  const auto second = Open(requests[1]);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->epoch().generation(), opened.epoch().generation() + 1);
  const auto first = Open(requests[0]);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->epoch().generation(), second->epoch().generation());
  EXPECT_EQ(Beat(opened, 1).phase(), ClientReply::FENCED);
  EXPECT_EQ(Beat(*first, 1, {}, 10).phase(), ClientReply::OPEN);
  EXPECT_EQ(Beat().leases(0).bundle(), 2);
}

TEST_F(DispatcherStateTest, AStateOfAnotherJobIsRefused) {
  const OpenReply opened = OpenEpoch(1);
  OpenRequest request = Request(3);
  ConsumerState* state = request.add_states();
  *state->mutable_epoch() = opened.epoch();
  state->set_job("other");
  state->set_plan("p");
  state->set_slots(1);
  EXPECT_THAT(Open(request).status().message(), HasSubstr("'other'"));
}

TEST_F(DispatcherStateTest, AWorkerThatIsNotHeardOfLosesItsLeases) {
  const OpenReply opened = OpenEpoch(1);
  Beat(opened, 1);
  const Lease lease = Beat().leases(0);
  now_ += DispatcherState::Settings().lease_ms;
  state_->Tick(now_, writes_);
  EXPECT_THAT(Beat(opened, 1).assigned(), IsEmpty());
  EXPECT_NE(Beat().leases(0).attempt(), lease.attempt());
}

TEST_F(DispatcherStateTest, ADamagedRecordIsNamed) {
  OpenEpoch(1);
  for (auto& [key, value] : disk_) {
    if (key.rfind("run/", 0) == 0) value = "\xff\xff";
  }
  std::vector<store::Record> records;
  for (const auto& [key, value] : disk_) records.push_back({key, value});
  const auto made = DispatcherState::Make({}, 99, now_, records);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(made.status().message(), HasSubstr("run/"));
}

TEST_F(DispatcherStateTest, WhatNobodyUsesIsDeleted) {
  OpenEpoch(1);
  state_->AddPlan("unused", "x", false, now_, writes_);
  state_->AddPlan("kept", "y", true, now_, writes_);
  Write();
  EXPECT_THAT(Keys("plan/"), SizeIs(3));
  // A consumer that beats keeps its job, and that what the job uses.
  for (int minutes = 0; minutes < 180; ++minutes) {
    now_ += 60'000;
    Beat(*Open(Request(1)), 1);
    state_->Tick(now_, writes_);
    Write();
  }
  EXPECT_THAT(Keys("plan/"), SizeIs(2));
  EXPECT_EQ(state_->FindPlan("unused"), nullptr);
  EXPECT_NE(state_->FindPlan("kept"), nullptr);
  EXPECT_THAT(Keys("manifest/"), SizeIs(1));
  // Without it, all goes but what is kept; also after a restart.
  Restart();
  for (int minutes = 0; minutes < 180; ++minutes) {
    now_ += 60'000;
    state_->Tick(now_, writes_);
    Write();
  }
  EXPECT_EQ(Keys("plan/"), std::vector<std::string>{"plan/kept"});
  EXPECT_THAT(Keys("manifest/"), IsEmpty());
}

TEST_F(DispatcherStateTest, LargePlansAreWrittenInPieces) {
  std::string plan(size_t{70} << 20, 'x');
  plan.back() = 'y';
  state_->AddPlan("large", plan, false, now_, writes_);
  for (const store::Write& write : writes_.durable) {
    EXPECT_LT(write.value->size(), store::kMaxValueBytes);
  }
  Write();
  EXPECT_THAT(Keys("plan/large"), SizeIs(3));
  Restart();
  ASSERT_NE(state_->FindPlan("large"), nullptr);
  EXPECT_TRUE(*state_->FindPlan("large") == plan);
}

TEST_F(DispatcherStateTest, NewsNameWhoShouldHear) {
  const OpenReply opened = OpenEpoch(2);
  state_->TakeNews();
  Beat(opened, 8);
  EXPECT_TRUE(state_->TakeNews().has_work);
  const WorkerReply granted = Beat();
  News news = state_->TakeNews();
  ASSERT_FALSE(news.seats.empty());
  EXPECT_EQ(news.seats[0].slot, 0);
  EXPECT_FALSE(news.lows.empty());
  // There is nothing left: nobody need ask.
  Beat();
  EXPECT_FALSE(state_->TakeNews().has_work);
  Beat(opened, 8, {0});
  news = state_->TakeNews();
  EXPECT_EQ(news.workers, std::vector<uint64_t>{9});
}

TEST_F(DispatcherStateTest, ACancelledJobIsOver) {
  const OpenReply opened = OpenEpoch(2);
  Beat(opened, 8);
  Beat();
  EXPECT_TRUE(state_->Cancel("train", writes_).ok());
  Write();
  EXPECT_THAT(Keys("run/"), IsEmpty());
  EXPECT_THAT(Keys("bind/"), IsEmpty());
  const ClientReply reply = Beat(opened, 8);
  EXPECT_EQ(reply.phase(), ClientReply::FAILED);
  EXPECT_EQ(reply.error(), "job 'train' was cancelled");
  EXPECT_FALSE(state_->Cancel("train", writes_).ok());
  // Its name is free.
  EXPECT_TRUE(Open(Request(2)).ok());
}

TEST_F(DispatcherStateTest, AWorkerHearsThatItShouldDrain) {
  EXPECT_FALSE(Beat().should_drain());
  EXPECT_FALSE(state_->Drain("w8").ok());
  EXPECT_TRUE(state_->Drain("w9").ok());
  EXPECT_EQ(state_->TakeNews().drained, std::vector<uint64_t>{9});
  EXPECT_TRUE(Beat().should_drain());
}

TEST_F(DispatcherStateTest, PeopleHearWhatHappens) {
  const auto events = [&] {
    std::vector<std::string> events;
    for (const Happening& each : state_->TakeNews().happenings) {
      events.push_back(each.event);
    }
    return events;
  };
  const OpenReply opened = OpenEpoch(1);
  EXPECT_THAT(events(), ElementsAre("job_opened", "worker_joined"));
  // Each worker that computes the bundle dies of it.
  for (int i = 0; i < DispatcherState::Settings().max_crashes; ++i) {
    Beat(opened, 8);
    WorkerBeat beat;
    const WorkerReply granted = Beat();
    for (const Lease& lease : granted.leases()) {
      WorkerBeat::Held* held = beat.add_held();
      *held->mutable_epoch() = lease.epoch();
      held->set_bundle(lease.bundle());
      held->set_attempt(lease.attempt());
      held->set_is_started(true);
    }
    ASSERT_THAT(beat.held(), SizeIs(1));
    Beat(beat);
    now_ += DispatcherState::Settings().lease_ms;
    state_->Tick(now_, writes_);
  }
  std::vector<std::string> said = events();
  EXPECT_THAT(said, Contains("worker_lost").Times(5));
  EXPECT_THAT(said, Contains("bundle_quarantined").Times(1));
  // One that has given everything back is not lost.
  WorkerBeat beat;
  beat.set_is_draining(true);
  Beat(beat);
  now_ += DispatcherState::Settings().lease_ms;
  state_->Tick(now_, writes_);
  EXPECT_THAT(events(), ElementsAre("worker_joined", "worker_left"));
  EXPECT_TRUE(state_->Cancel("train", writes_).ok());
  EXPECT_THAT(events(), ElementsAre("job_closed"));
}

TEST_F(DispatcherStateTest, JobsTakeTurns) {
  for (const char* job : {"a", "b"}) {
    OpenRequest request = Request(1);
    request.set_job(job);
    ASSERT_TRUE(Open(request).ok());
  }
  // One worker after another, each with room for one.
  std::vector<uint64_t> runs;
  for (uint64_t id = 1; id <= 2; ++id) {
    WorkerBeat beat;
    beat.set_worker(id);
    beat.set_room(1);
    const WorkerReply reply = state_->OnWorker(beat, now_, writes_);
    ASSERT_THAT(reply.leases(), SizeIs(1));
    runs.push_back(reply.leases(0).epoch().run());
  }
  EXPECT_NE(runs[0], runs[1]);
}

}  // namespace
}  // namespace penstock::service
