#include "penstock/service/dispatcher/dispatcher_state.h"

#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::service {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A dispatcher whose writes all reach the disk, one that can be restarted.
class DispatcherStateTest : public testing::Test {
 protected:
  DispatcherStateTest() { Restart(); }

  void Restart() {
    std::vector<store::Record> records;
    for (const auto& [key, value] : disk_) records.push_back({key, value});
    auto made = DispatcherState::Make({}, ++term_, now_, records);
    ASSERT_TRUE(made.ok()) << made.status();
    state_ = *std::move(made);
    state_->AddPlan("p", "plan", false, now_, writes_);
    Write();
  }
  void Write() {
    for (const store::WriteBatch* batch : {&writes_.durable, &writes_.lazy}) {
      for (const auto& [key, value] : *batch) {
        if (value) {
          disk_[key] = *value;
        } else {
          disk_.erase(key);
        }
      }
    }
    writes_ = {};
  }

  OpenRequest Request(uint64_t number, uint32_t slot = 0,
                      uint32_t slots = 1) const {
    OpenRequest request;
    request.mutable_opener()->set_consumer(number);
    request.set_job("train");
    request.set_plan("p");
    request.set_visitation(EXACTLY_ONCE);
    request.set_slot(slot);
    request.set_slots(slots);
    return request;
  }
  absl::StatusOr<OpenReply> Open(const OpenRequest& request) {
    auto reply = state_->Open(request, now_, writes_);
    Write();
    return reply;
  }
  WorkerReply Beat(WorkerBeat beat = {}) {
    beat.set_worker(9);
    beat.set_address("w9");
    if (beat.room() == 0) beat.set_room(4);
    WorkerReply reply = state_->OnWorker(beat, now_, writes_);
    Write();
    return reply;
  }
  ClientReply Beat(const OpenReply& opened, uint32_t want,
                   std::vector<uint64_t> finished = {}, uint64_t consumer = 1,
                   uint32_t slot = 0) {
    ClientBeat beat;
    *beat.mutable_epoch() = opened.epoch();
    beat.set_slot(slot);
    beat.mutable_opener()->set_consumer(consumer);
    beat.set_want(want);
    for (const uint64_t bundle : finished) {
      beat.add_finished()->set_bundle(bundle);
    }
    ClientReply reply = state_->OnClient(beat, now_, writes_);
    Write();
    return reply;
  }
  // Opens an epoch of `bundles`, with the manifest that a worker makes.
  OpenReply OpenEpoch(uint64_t bundles) {
    const OpenRequest request = Request(1);
    EXPECT_EQ(Open(request)->phase(), OpenReply::WAITING);
    const WorkerReply granted = Beat();
    EXPECT_EQ(granted.leases_size(), 1);
    WorkerBeat beat;
    WorkerBeat::Made* made = beat.add_made();
    *made->mutable_epoch() = granted.leases(0).epoch();
    made->set_attempt(granted.leases(0).attempt());
    made->mutable_manifest()->set_rows(bundles);
    made->mutable_manifest()->set_rows_per_bundle(1);
    made->mutable_manifest()->set_passes(1);
    EXPECT_THAT(Beat(beat).made_taken(), SizeIs(1));
    const auto reply = Open(request);
    EXPECT_EQ(reply->phase(), OpenReply::OPEN);
    return *reply;
  }

  std::map<std::string, std::string> disk_;
  std::unique_ptr<DispatcherState> state_;
  Writes writes_;
  uint64_t term_ = 0;
  int64_t now_ = 1'000;
};

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

TEST_F(DispatcherStateTest, ANewerSessionWins) {
  const OpenReply first = OpenEpoch(1);
  OpenRequest request = Request(2);
  EXPECT_EQ(Open(request).status().code(), absl::StatusCode::kAlreadyExists);
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
    OpenRequest request = Request(10 + slot, slot, 2);
    ConsumerState* state = request.add_states();
    *state->mutable_epoch() = opened.epoch();
    state->set_job("train");
    state->set_plan("p");
    state->set_manifest(opened.manifest());
    state->set_slot(slot);
    state->set_slots(2);
    state->add_done()->set_begin(slot);
    state->mutable_done(0)->set_end(slot + 1);
    requests.push_back(request);
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

// Keys on the disk that begin with `kind`.
std::vector<std::string> KeysOf(const std::map<std::string, std::string>& disk,
                                const std::string& kind) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : disk) {
    if (key.substr(0, kind.size()) == kind) keys.push_back(key);
  }
  return keys;
}

TEST_F(DispatcherStateTest, WhatNobodyUsesIsDeleted) {
  OpenEpoch(1);
  state_->AddPlan("unused", "x", false, now_, writes_);
  state_->AddPlan("kept", "y", true, now_, writes_);
  Write();
  EXPECT_THAT(KeysOf(disk_, "plan/"), SizeIs(3));
  // A consumer that beats keeps its job, and that what the job uses.
  for (int minutes = 0; minutes < 180; ++minutes) {
    now_ += 60'000;
    Beat(*Open(Request(1)), 1);
    state_->Tick(now_, writes_);
    Write();
  }
  EXPECT_THAT(KeysOf(disk_, "plan/"), SizeIs(2));
  EXPECT_EQ(state_->FindPlan("unused"), nullptr);
  EXPECT_NE(state_->FindPlan("kept"), nullptr);
  EXPECT_THAT(KeysOf(disk_, "manifest/"), SizeIs(1));
  // Without it, all goes but what is kept; also after a restart.
  Restart();
  for (int minutes = 0; minutes < 180; ++minutes) {
    now_ += 60'000;
    state_->Tick(now_, writes_);
    Write();
  }
  EXPECT_EQ(KeysOf(disk_, "plan/"), std::vector<std::string>{"plan/kept"});
  EXPECT_THAT(KeysOf(disk_, "manifest/"), IsEmpty());
}

TEST_F(DispatcherStateTest, LargePlansAreWrittenInPieces) {
  std::string plan(size_t{70} << 20, 'x');
  plan.back() = 'y';
  state_->AddPlan("large", plan, false, now_, writes_);
  for (const store::Write& write : writes_.durable) {
    EXPECT_LT(write.value->size(), store::kMaxValueBytes);
  }
  Write();
  EXPECT_THAT(KeysOf(disk_, "plan/large"), SizeIs(3));
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
  EXPECT_THAT(KeysOf(disk_, "run/"), IsEmpty());
  EXPECT_THAT(KeysOf(disk_, "bind/"), IsEmpty());
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
