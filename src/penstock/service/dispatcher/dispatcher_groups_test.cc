#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/service/dispatcher/dispatcher_state_testing.h"

namespace penstock::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class GroupsTest : public DispatcherStateTest {
 protected:
  // A trial that shares `name` with others.
  OpenRequest Sharing(const std::string& job, uint64_t consumer,
                      Visitation visitation = EXACTLY_ONCE) const {
    OpenRequest request = Request(consumer);
    request.set_job(job);
    request.set_visitation(visitation);
    request.set_is_ordered(true);
    request.set_seed(consumer);
    request.mutable_group()->set_name("trials");
    if (visitation == AT_MOST_ONCE) {
      request.mutable_group()->set_policy(service::Sharing::SKIP);
    }
    return request;
  }
  // Consumer `lane` of `lanes`.
  OpenRequest Lane(uint32_t lane, uint32_t lanes, uint64_t consumer) const {
    OpenRequest request = Sharing(absl::StrCat("train[", lane, "]"), consumer);
    request.mutable_group()->set_name("train");
    request.mutable_group()->set_lanes(lanes);
    request.mutable_group()->set_lane(lane);
    return request;
  }
  WorkerReply BeatOf(uint64_t worker, uint32_t room = 4, WorkerBeat beat = {}) {
    beat.set_worker(worker);
    beat.set_address(absl::StrCat("w", worker));
    beat.set_room(room);
    WorkerReply reply = state_->OnWorker(beat, now_, writes_);
    Write();
    return reply;
  }
  // The first one's opening, with the manifest that worker 9 makes.
  OpenReply Found(const OpenRequest& request, uint64_t bundles) {
    EXPECT_EQ(Open(request)->phase(), OpenReply::WAITING);
    const WorkerReply granted = BeatOf(9);
    WorkerBeat beat;
    WorkerBeat::Made* made = beat.add_made();
    *made->mutable_epoch() = granted.leases(0).epoch();
    made->set_attempt(granted.leases(0).attempt());
    made->mutable_manifest()->set_rows(bundles);
    made->mutable_manifest()->set_rows_per_bundle(1);
    made->mutable_manifest()->set_passes(1);
    BeatOf(9, 0, beat);
    return *Open(request);
  }
  static std::vector<uint64_t> BundlesOf(const WorkerReply& reply) {
    std::vector<uint64_t> bundles;
    for (const Lease& lease : reply.leases()) bundles.push_back(lease.bundle());
    return bundles;
  }
};

TEST_F(GroupsTest, WhoComesLaterHasTheSameFromTheSameWorkers) {
  const OpenReply a = Found(Sharing("a", 1), 4);
  const auto b = Open(Sharing("b", 2));
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(b->phase(), OpenReply::OPEN) << "the manifest is known";
  EXPECT_EQ(b->seed(), a.seed());
  EXPECT_THAT(b->members(), ElementsAre("a", "b"));
  Beat(a, 2, {}, 1);
  const WorkerReply first = BeatOf(9, 1);
  const WorkerReply second = BeatOf(8, 1);
  EXPECT_THAT(BundlesOf(first), ElementsAre(0));
  EXPECT_THAT(BundlesOf(second), ElementsAre(1));
  // It follows without any worker's asking for more.
  const ClientReply reply = Beat(*b, 2, {}, 2);
  ASSERT_THAT(reply.assigned(), SizeIs(2));
  EXPECT_EQ(reply.assigned(0).address(), "w9");
  EXPECT_EQ(reply.assigned(1).address(), "w8");
  WorkerBeat held;
  *held.add_held()->mutable_epoch() = first.leases(0).epoch();
  held.mutable_held(0)->set_attempt(first.leases(0).attempt());
  const WorkerReply told = BeatOf(9, 0, held);
  ASSERT_THAT(told.leases(), SizeIs(1));
  EXPECT_EQ(told.leases(0).sharing().production(),
            first.leases(0).sharing().production());
  EXPECT_TRUE(told.leases(0).sharing().is_following());
  EXPECT_FALSE(first.leases(0).sharing().is_following());
  EXPECT_NE(first.leases(0).sharing().production(),
            second.leases(0).sharing().production());
  // As people see it.
  State seen;
  state_->Describe(now_, seen);
  ASSERT_THAT(seen.jobs(), SizeIs(2));
  EXPECT_EQ(seen.jobs(0).epochs(0).consumers(0).shared_bundles(), 0);
  EXPECT_EQ(seen.jobs(1).epochs(0).consumers(0).shared_bundles(), 2);
  EXPECT_TRUE(seen.jobs(1).epochs(0).consumers(0).has_row());
}

TEST_F(GroupsTest, ALostWorkersBundlesGoToAnotherForAll) {
  const OpenReply a = Found(Sharing("a", 1), 1);
  const OpenReply b = *Open(Sharing("b", 2));
  Beat(a, 2, {}, 1);
  Beat(b, 2, {}, 2);
  BeatOf(9, 1);
  EXPECT_THAT(Beat(b, 2, {}, 2).assigned(), SizeIs(1));
  now_ += settings_.lease_ms - 1;
  BeatOf(8, 0);
  now_ += 1;
  Tick();
  EXPECT_THAT(Beat(a, 2, {}, 1).assigned(), IsEmpty());
  EXPECT_THAT(BundlesOf(BeatOf(8, 1)), ElementsAre(0));
  EXPECT_EQ(Beat(a, 2, {}, 1).assigned(0).address(), "w8");
  EXPECT_EQ(Beat(b, 2, {}, 2).assigned(0).address(), "w8");
}

// A bundle that has to be computed anew for all brings nobody to compute those
// after it once more, which another has begun.
TEST_F(GroupsTest, WhatOneHasBegunIsNotBegunElsewhere) {
  const OpenReply a = Found(Sharing("a", 1), 2);
  const OpenReply b = *Open(Sharing("b", 2));
  Beat(a, 2, {}, 1);
  EXPECT_THAT(BundlesOf(BeatOf(9, 1)), ElementsAre(0));
  EXPECT_THAT(BundlesOf(BeatOf(8, 1)), ElementsAre(1));
  now_ += settings_.lease_ms - 1;
  BeatOf(8, 0);
  now_ += 1;
  Tick();  // the first one is lost
  Beat(a, 2, {}, 1);
  Beat(b, 2, {}, 2);
  EXPECT_THAT(BundlesOf(BeatOf(7, 4)), ElementsAre(0, 0)) << "for a and b";
  const ClientReply reply = Beat(b, 2, {}, 2);
  ASSERT_THAT(reply.assigned(), SizeIs(2));
  EXPECT_EQ(reply.assigned(0).address(), "w7");
  EXPECT_EQ(reply.assigned(1).address(), "w8");
}

TEST_F(GroupsTest, MembersMustAgree) {
  Found(Sharing("a", 1), 4);
  state_->AddPlan("q", "another", false, now_, writes_);
  OpenRequest other = Sharing("b", 2);
  other.set_plan("q");
  const auto plan = Open(other);
  EXPECT_THAT(plan.status().message(), HasSubstr("the same pipeline"));
  EXPECT_THAT(plan.status().message(), HasSubstr("job 'a' has p, job 'b' q"));
  EXPECT_THAT(Open(Sharing("b", 2, AT_MOST_ONCE)).status().message(),
              HasSubstr("the same visitation"));
  // The others go on, and another group is another's.
  other.mutable_group()->set_name("others");
  EXPECT_TRUE(Open(other).ok());
  EXPECT_TRUE(Open(Sharing("c", 3)).ok());
}

TEST_F(GroupsTest, TenantsShareNothing) {
  const OpenReply a = Found(Sharing("a", 1), 4);
  OpenRequest other = Sharing("b", 2);
  other.mutable_group()->set_tenant("others");
  const auto b = Open(other);
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_NE(b->seed(), a.seed());
  EXPECT_THAT(b->members(), ElementsAre("b"));
  // Nor must they agree on anything.
  other.set_job("c");
  other.mutable_group()->set_policy(service::Sharing::SKIP);
  other.mutable_group()->set_tenant("third");
  EXPECT_TRUE(Open(other).ok());
}

TEST_F(GroupsTest, AtMostOnceOneThatComesLateBeginsWhereTheOthersAre) {
  const OpenReply a = Found(Sharing("a", 1, AT_MOST_ONCE), 1'000);
  const uint64_t bundles = SharedTable::kMost + 20;
  for (uint64_t i = 0; i < bundles; ++i) {
    ClientBeat beat;
    *beat.mutable_epoch() = a.epoch();
    beat.mutable_opener()->set_consumer(1);
    beat.set_want(1);
    if (i > 0) {
      beat.add_finished()->set_bundle(i - 1);
      beat.mutable_finished(0)->set_items(10);
    }
    state_->OnClient(beat, now_, writes_);
    BeatOf(9, 1);
  }
  const OpenReply b = *Open(Sharing("b", 2, AT_MOST_ONCE));
  const ClientReply reply = Beat(b, 2, {}, 2);
  EXPECT_EQ(reply.skipped_to(), 20);
  EXPECT_EQ(reply.missed_bundles(), 0) << "it was not there yet";
  ASSERT_THAT(reply.assigned(), SizeIs(2));
  EXPECT_EQ(reply.assigned(0).bundle(), 20);
  // A restart does not bring them back.
  Restart();
  now_ += settings_.lease_ms;
  Tick();
  BeatOf(9, 4);
  const ClientReply after = Beat(b, 8, {}, 2);
  for (const auto& each : after.assigned()) EXPECT_GE(each.bundle(), 20);
}

// The table of a group has the last bundles alone. One that is behind them has
// what was before computed again.
TEST_F(GroupsTest, WhoWaitsForOthersLeavesNothingOut) {
  constexpr uint64_t kBundles = 400;
  for (const auto policy : {service::Sharing::WAIT, service::Sharing::SKIP}) {
    disk_.clear();
    Restart();
    OpenRequest fast = Sharing("fast", 1, AT_MOST_ONCE);
    OpenRequest slow = Sharing("slow", 2, AT_MOST_ONCE);
    fast.mutable_group()->set_policy(policy);
    slow.mutable_group()->set_policy(policy);
    const OpenReply a = Found(fast, kBundles);
    const auto b = Open(slow);
    ASSERT_TRUE(b.ok()) << b.status();
    Beat(*b, 1, {}, 2);
    BeatOf(9, 1);
    Beat(*b, 0, {0}, 2);
    Beat(a, 1, {}, 1);
    for (uint64_t done = 0; done < kBundles / 2; ++done) {
      BeatOf(9, 1);
      Beat(a, 1, {done}, 1);
    }
    const ClientReply reply = Beat(*b, 2, {}, 2);
    EXPECT_EQ(reply.skipped_to() > 0, policy == service::Sharing::SKIP);
    EXPECT_EQ(reply.missed_bundles() > 0, policy == service::Sharing::SKIP);
  }
}

TEST_F(GroupsTest, RoundsAreCancelledByTheirName) {
  const OpenReply a = Found(Lane(0, 2, 1), 4);
  const OpenReply b = *Open(Lane(1, 2, 2));
  EXPECT_TRUE(state_->Cancel("train", writes_).ok());
  Write();
  EXPECT_EQ(Beat(a, 1, {}, 1).phase(), ClientReply::FAILED);
  EXPECT_EQ(Beat(b, 1, {}, 2).phase(), ClientReply::FAILED);
  EXPECT_FALSE(state_->Cancel("train", writes_).ok());
}

TEST_F(GroupsTest, ExactlyOnceOneThatComesLateHasAll) {
  const OpenReply a = Found(Sharing("a", 1), 1'000);
  Beat(a, 1, {}, 1);
  BeatOf(9, 1);
  Beat(a, 1, {0}, 1);
  BeatOf(9, 1);
  const OpenReply b = *Open(Sharing("b", 2));
  const ClientReply reply = Beat(b, 1, {}, 2);
  EXPECT_EQ(reply.skipped_to(), 0);
  ASSERT_THAT(reply.assigned(), SizeIs(1));
  EXPECT_EQ(reply.assigned(0).bundle(), 0);
}

TEST_F(GroupsTest, OneThatCannotReadThereHasItElsewhere) {
  const OpenReply a = Found(Sharing("a", 1), 1);
  const OpenReply b = *Open(Sharing("b", 2));
  Beat(a, 1, {}, 1);
  BeatOf(9, 1);
  const ClientReply reply = Beat(b, 1, {}, 2);
  ClientBeat bad;
  *bad.mutable_epoch() = b.epoch();
  bad.mutable_opener()->set_consumer(2);
  bad.set_want(1);
  bad.add_bad()->set_attempt(reply.assigned(0).attempt());
  state_->OnClient(bad, now_, writes_);
  BeatOf(8, 1);
  EXPECT_EQ(Beat(b, 1, {}, 2).assigned(0).address(), "w8");
  EXPECT_EQ(Beat(a, 1, {}, 1).assigned(0).address(), "w9");
}

TEST_F(GroupsTest, LanesMustAgree) {
  Found(Lane(0, 2, 1), 4);
  EXPECT_THAT(Open(Lane(2, 2, 3)).status().message(), HasSubstr("[0, 2)"));
  const auto other = Open(Lane(1, 3, 2));
  EXPECT_THAT(other.status().message(), HasSubstr("num_consumers"));
  EXPECT_THAT(other.status().message(), HasSubstr("has 2, job 'train[1]' 3"));
  EXPECT_TRUE(Open(Lane(1, 2, 2)).ok());
  const auto twice = Open(Lane(1, 2, 5));
  EXPECT_EQ(twice.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(twice.status().message(), HasSubstr("consumer 1 of 2"));
}

TEST_F(GroupsTest, OneThatComesBackWithoutAStateGoesOnWhereTheOthersAre) {
  const OpenReply a = Found(Lane(0, 2, 1), 8);
  const OpenReply b = *Open(Lane(1, 2, 2));
  ClientBeat beat;
  *beat.mutable_epoch() = a.epoch();
  beat.mutable_opener()->set_consumer(1);
  beat.set_want(2);
  beat.set_row(37);
  beat.mutable_place()->add_done()->set_end(3);
  beat.mutable_place()->add_open()->set_bundle(3);
  beat.mutable_place()->mutable_open(0)->set_position(5);
  state_->OnClient(beat, now_, writes_);
  OpenRequest again = Lane(1, 2, 6);
  now_ += settings_.client_timeout_ms;
  state_->OnClient(beat, now_, writes_);
  EXPECT_THAT(Open(again).status().message(), HasSubstr("Load its state"));
  again.set_on_existing(OpenRequest::ATTACH);
  const auto back = Open(again);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->row(), 37);
  EXPECT_EQ(back->inherited_done(0).end(), 3);
  EXPECT_EQ(back->inherited_open(0).position(), 5);
  EXPECT_EQ(back->seed(), a.seed());
  EXPECT_EQ(back->epoch().generation(), b.epoch().generation() + 1);
  // It may not have heard that before the dispatcher died.
  Restart();
  const auto again_told = Open(again);
  ASSERT_TRUE(again_told.ok()) << again_told.status();
  EXPECT_EQ(again_told->row(), 37);
  Beat(*back, 1, {}, 6);
  BeatOf(9, 4);
  EXPECT_EQ(Beat(*back, 1, {}, 6).assigned(0).bundle(), 3);
}

// After a restart they say it within the time that a lease has, as workers do.
TEST_F(GroupsTest, WhereTheOthersAreIsWaitedFor) {
  const OpenReply a = Found(Lane(0, 2, 1), 8);
  ASSERT_TRUE(Open(Lane(1, 2, 2)).ok());
  Restart();
  OpenRequest back = Lane(1, 2, 6);
  back.set_on_existing(OpenRequest::ATTACH);
  EXPECT_EQ(Open(back).status().code(), absl::StatusCode::kUnavailable);
  ClientBeat beat;
  *beat.mutable_epoch() = a.epoch();
  beat.mutable_opener()->set_consumer(1);
  beat.set_row(5);
  beat.mutable_place()->add_done()->set_end(1);
  state_->OnClient(beat, now_, writes_);
  EXPECT_EQ(Open(back).status().code(), absl::StatusCode::kUnavailable)
      << "another may be further";
  now_ += settings_.lease_ms;
  Tick();
  const auto reply = Open(back);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->row(), 5);
}

TEST_F(GroupsTest, RoundsGoOnWithAnotherNumberOfMembers) {
  const OpenReply a = Found(Lane(0, 2, 1), 8);
  const OpenReply b = *Open(Lane(1, 2, 2));
  // Both had five rounds of bundle 3 when they were asked to be three.
  ConsumerState place;
  *place.mutable_epoch() = a.epoch();
  place.set_job("train[0]");
  place.set_plan("p");
  place.set_manifest(a.manifest());
  place.set_slots(1);
  place.set_seed(a.seed());
  place.set_lanes(2);
  place.set_row(37);
  place.add_done()->set_end(3);
  place.add_open()->set_bundle(3);
  place.mutable_open(0)->set_position(5);
  const auto resized = [&](uint32_t lane, uint32_t lanes, uint64_t consumer) {
    OpenRequest request = Lane(lane, lanes, consumer);
    request.set_job(absl::StrCat("train[", lane, "/", lanes, "]"));
    *request.mutable_group()->mutable_resized_from() = place;
    return request;
  };
  OpenRequest late = resized(2, 3, 13);
  late.mutable_group()->clear_resized_from();
  EXPECT_THAT(Open(late).status().message(), HasSubstr("by resize() alone"));
  late.mutable_group()->set_row(37);
  EXPECT_EQ(Open(late).status().code(), absl::StatusCode::kUnavailable);
  const auto c = Open(resized(0, 3, 11));
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->phase(), OpenReply::OPEN);
  EXPECT_EQ(c->row(), 37);
  EXPECT_EQ(c->seed(), a.seed());
  EXPECT_EQ(c->inherited_done(0).end(), 3);
  ASSERT_THAT(c->splits(), SizeIs(1));
  EXPECT_EQ(c->splits(0).lanes(), 2);
  EXPECT_EQ(c->splits(0).position(), 5);
  EXPECT_EQ(c->resized_at(), 37);
  // A restart does not change what a new one hears.
  Restart();
  const auto d = Open(late);
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(d->row(), 37);
  EXPECT_EQ(d->splits(0).position(), 5);
  EXPECT_EQ(d->seed(), a.seed());
  place.set_row(38);
  EXPECT_THAT(Open(resized(1, 3, 12)).status().message(),
              HasSubstr("has 37, job 'train[1/3]' 38"));
  // Both have the same bundles, cut as the two had begun them.
  now_ += settings_.lease_ms;
  Tick();
  Beat(*c, 1, {}, 11);
  Beat(*d, 1, {}, 13);
  const WorkerReply leased = BeatOf(9, 4);
  ASSERT_THAT(leased.leases(), SizeIs(2));
  for (const Lease& lease : leased.leases()) {
    EXPECT_EQ(lease.bundle(), 3);
    EXPECT_EQ(lease.sharing().split().lanes(), 2);
    EXPECT_EQ(lease.sharing().production(),
              leased.leases(0).sharing().production());
  }
}

TEST_F(GroupsTest, OneThatGoesOnBesideAResizedGroupIsTold) {
  const OpenReply a = Found(Lane(0, 2, 1), 8);
  const OpenReply b = *Open(Lane(1, 2, 2));
  OpenRequest request = Lane(0, 1, 3);
  request.set_job("train[0/1]");
  ConsumerState& place = *request.mutable_group()->mutable_resized_from();
  place.set_plan("p");
  place.set_seed(a.seed());
  place.set_manifest(a.manifest());
  place.set_lanes(2);
  place.set_row(10);
  ASSERT_TRUE(Open(request).ok());
  ClientBeat beat;
  *beat.mutable_epoch() = b.epoch();
  beat.mutable_opener()->set_consumer(2);
  beat.set_row(10);
  EXPECT_EQ(state_->OnClient(beat, now_, writes_).phase(), ClientReply::OPEN);
  beat.set_row(11);
  const ClientReply reply = state_->OnClient(beat, now_, writes_);
  EXPECT_EQ(reply.phase(), ClientReply::FAILED);
  EXPECT_THAT(reply.error(), HasSubstr("resized to 1 at round 10"));
}

class ResizedTest : public GroupsTest {
 protected:
  // Two that read in rounds.
  ResizedTest()
      : first_(Found(LaneOf(0, 2, 1), 8)), second_(*Open(LaneOf(1, 2, 2))) {}

  OpenRequest LaneOf(uint32_t lane, uint32_t lanes, uint64_t consumer) const {
    OpenRequest request = Lane(lane, lanes, consumer);
    request.set_job(JobOf(lane, lanes));
    return request;
  }
  static std::string JobOf(uint32_t lane, uint32_t lanes) {
    return absl::StrCat("train[", lane, "/", lanes, "]");
  }
  // Where `lanes` were before row `row`, after `position` rounds of bundle 3.
  ConsumerState Place(uint32_t lanes, uint64_t row, uint64_t position) const {
    ConsumerState place;
    *place.mutable_epoch() = first_.epoch();
    place.set_job(JobOf(0, lanes));
    place.set_plan("p");
    place.set_manifest(first_.manifest());
    place.set_slots(1);
    place.set_seed(first_.seed());
    place.set_lanes(lanes);
    place.set_row(row);
    place.add_done()->set_end(3);
    place.add_open()->set_bundle(3);
    place.mutable_open(0)->set_position(position);
    return place;
  }
  OpenRequest ResizedFrom(const ConsumerState& place, uint32_t lane,
                          uint32_t lanes, uint64_t consumer) const {
    OpenRequest request = LaneOf(lane, lanes, consumer);
    *request.mutable_group()->mutable_resized_from() = place;
    return request;
  }
  // From its own state, of the time when they were resized at `resized_at`.
  OpenRequest Restored(const ConsumerState& place, uint32_t lane,
                       uint64_t resized_at, uint64_t consumer) const {
    OpenRequest request = LaneOf(lane, place.lanes(), consumer);
    ConsumerState* state = request.add_states();
    *state = place;
    state->set_job(request.job());
    state->set_resized_at(resized_at);
    request.mutable_group()->set_resized_at(resized_at);
    *request.mutable_group()->mutable_splits() = place.splits();
    return request;
  }
  ClientReply BeatAt(const OpenReply& opened, uint64_t row, uint64_t consumer) {
    ClientBeat beat;
    *beat.mutable_epoch() = opened.epoch();
    beat.mutable_opener()->set_consumer(consumer);
    beat.set_row(row);
    ClientReply reply = state_->OnClient(beat, now_, writes_);
    Write();
    return reply;
  }

  const OpenReply first_;
  const OpenReply second_;
};

// Those of before are not heard of any more, and yet not given up.
TEST_F(ResizedTest, AfterARestartTheyMayBecomeAsManyAsBefore) {
  ASSERT_TRUE(Open(ResizedFrom(Place(2, 10, 5), 0, 3, 11)).ok());
  Restart();
  EXPECT_EQ(BeatAt(second_, 11, 2).phase(), ClientReply::FAILED)
      << "it is told, as before";
  const auto again = Open(ResizedFrom(Place(3, 20, 7), 0, 2, 21));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->resized_at(), 20);
  const auto other = Open(ResizedFrom(Place(3, 20, 7), 1, 2, 22));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(BeatAt(*other, 21, 22).phase(), ClientReply::OPEN);
  Restart();
  EXPECT_EQ(BeatAt(*other, 22, 22).phase(), ClientReply::OPEN);
}

// All have died, which nobody knows yet, and go on from a checkpoint of before.
TEST_F(ResizedTest, ACheckpointOfBeforeIsGoneBackTo) {
  const auto resized = Open(ResizedFrom(Place(2, 10, 5), 0, 3, 11));
  ASSERT_TRUE(resized.ok()) << resized.status();
  const auto back = Open(Restored(Place(2, 6, 2), 0, 0, 21));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->resized_at(), 0);
  const auto other = Open(Restored(Place(2, 6, 2), 1, 0, 22));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(BeatAt(*resized, 10, 11).phase(), ClientReply::FENCED)
      << "its rounds are no more";
  EXPECT_EQ(BeatAt(*back, 11, 21).phase(), ClientReply::OPEN);
  Restart();
  EXPECT_EQ(BeatAt(*back, 12, 21).phase(), ClientReply::OPEN);
}

TEST_F(ResizedTest, ACheckpointOfBeforeMayBeGoneOnWithByOthers) {
  const auto resized = Open(ResizedFrom(Place(2, 10, 5), 0, 3, 11));
  ASSERT_TRUE(resized.ok()) << resized.status();
  const auto back = Open(ResizedFrom(Place(2, 6, 2), 1, 3, 22));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->row(), 6);
  EXPECT_EQ(back->splits(0).position(), 2);
  EXPECT_EQ(BeatAt(*resized, 10, 11).phase(), ClientReply::FENCED);
  const auto other = Open(ResizedFrom(Place(2, 6, 2), 0, 3, 21));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(BeatAt(*back, 7, 22).phase(), ClientReply::OPEN);
}

// Of one that was resized since, or has died: the others have gone on.
TEST_F(ResizedTest, ACallThatComesLateTakesNobodyBack) {
  const OpenRequest late = ResizedFrom(Place(2, 10, 5), 0, 3, 11);
  ASSERT_TRUE(Open(late).ok());
  const auto next = Open(ResizedFrom(Place(3, 20, 7), 0, 2, 21));
  ASSERT_TRUE(next.ok()) << next.status();
  const auto told = Ask(late);
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->phase(), OpenReply::WAITING);
  EXPECT_NE(told->replaces(), 0);
  EXPECT_EQ(BeatAt(*next, 20, 21).phase(), ClientReply::OPEN);
  EXPECT_EQ(Ask(Restored(Place(2, 6, 2), 1, 0, 2))->phase(),
            OpenReply::WAITING);
  EXPECT_EQ(BeatAt(*next, 20, 21).phase(), ClientReply::OPEN);
}

// As many as before, and yet in other rounds: 1, 2, and again 1.
TEST_F(ResizedTest, AStateIsOfTheRoundsThatItWasSavedIn) {
  ASSERT_TRUE(Open(ResizedFrom(Place(2, 10, 5), 0, 1, 11)).ok());
  ASSERT_TRUE(Open(ResizedFrom(Place(1, 20, 7), 0, 2, 21)).ok());
  ASSERT_TRUE(Open(ResizedFrom(Place(2, 30, 9), 0, 1, 31)).ok());
  ConsumerState place = Place(1, 12, 6);
  Split* split = place.add_splits();
  split->set_bundle(3);
  split->set_lanes(2);
  split->set_position(5);
  const auto back = Open(Restored(place, 0, 10, 41));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->resized_at(), 10);
  ASSERT_THAT(back->splits(), SizeIs(1));
  EXPECT_EQ(back->splits(0).position(), 5);
  // Of a later time: that was left, and is gone on with.
  place = Place(1, 32, 9);
  const auto on = Open(Restored(place, 0, 30, 51));
  ASSERT_TRUE(on.ok()) << on.status();
  EXPECT_EQ(on->resized_at(), 30);
  EXPECT_THAT(on->splits(), IsEmpty());
}

// Nobody had a round in between: those of the first time are no more.
TEST_F(ResizedTest, TheyMayBeResizedTwiceAtOneRound) {
  ASSERT_TRUE(Open(ResizedFrom(Place(2, 10, 5), 0, 3, 11)).ok());
  ASSERT_TRUE(Open(ResizedFrom(Place(2, 10, 5), 0, 4, 21)).ok());
  const auto again = Open(ResizedFrom(Place(4, 20, 7), 1, 3, 31));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->resized_at(), 20);
}

// Its engine died before it had a row; or it came back, and says where it was.
TEST_F(ResizedTest, OneOfBeforeMayReadOnUpToThatRound) {
  ASSERT_TRUE(Open(ResizedFrom(Place(2, 10, 5), 0, 3, 11)).ok());
  OpenRequest again = LaneOf(1, 2, 2);
  again.mutable_opener()->set_request(5);
  const auto reply = Open(again);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->epoch().run(), second_.epoch().run());
  OpenRequest back = LaneOf(1, 2, 7);
  back.set_on_existing(OpenRequest::ATTACH);
  back.mutable_group()->set_row(11);
  EXPECT_EQ(Open(back).status().code(), absl::StatusCode::kUnavailable);
  back.mutable_group()->set_row(10);
  EXPECT_TRUE(Open(back).ok());
}

// Else it would begin rounds of its own, in the middle.
TEST_F(GroupsTest, WhoComesLaterWaitsForOthers) {
  OpenRequest late = Lane(1, 2, 2);
  late.mutable_group()->set_row(5);
  EXPECT_EQ(Open(late).status().code(), absl::StatusCode::kUnavailable);
  const OpenReply first = Found(Lane(0, 2, 1), 8);
  const auto reply = Open(late);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->seed(), first.seed());
}

TEST_F(ResizedTest, TheNextEpochHasBundlesThatNobodyHasBegun) {
  ASSERT_TRUE(Open(ResizedFrom(Place(2, 10, 5), 0, 3, 11)).ok());
  OpenRequest next = LaneOf(0, 3, 12);
  next.set_epoch(1);
  const OpenReply opened = Found(next, 8);
  EXPECT_EQ(opened.phase(), OpenReply::OPEN);
  EXPECT_EQ(opened.row(), 0);
  EXPECT_THAT(opened.splits(), IsEmpty());
  EXPECT_EQ(opened.resized_at(), 0);
  Beat(opened, 8, {}, 12);
  const WorkerReply leased = BeatOf(9, 8);
  EXPECT_THAT(leased.leases(), SizeIs(8));
  for (const Lease& lease : leased.leases()) {
    EXPECT_FALSE(lease.sharing().has_split()) << lease.bundle();
  }
}

// Rounds are those of all that are in them, whenever each comes: also when the
// others have read all that there is and have left.
TEST_F(GroupsTest, OneThatComesWhenTheOthersHaveEndedIsInTheirRounds) {
  const auto leave = [&](const OpenReply& opened, uint64_t consumer) {
    ReleaseRequest release;
    *release.mutable_epoch() = opened.epoch();
    release.mutable_opener()->set_consumer(consumer);
    ASSERT_TRUE(state_->Release(release, now_, writes_).ok());
    Write();
  };
  const OpenReply a = Found(Lane(0, 2, 1), 0);
  leave(a, 1);
  now_ += settings_.run_timeout_ms - 1;
  Tick();
  const auto b = Open(Lane(1, 2, 2));
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(b->seed(), a.seed());
  EXPECT_THAT(b->members(), ElementsAre("train[0]", "train[1]"));
  // They are forgotten together.
  now_ += settings_.run_timeout_ms - 1;
  Tick();
  EXPECT_THAT(Keys("run/"), SizeIs(2));
  leave(*b, 2);
  // Both have been in those: who comes now begins others.
  const auto c = Open(Lane(1, 2, 3));
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_NE(c->seed(), a.seed());
  leave(*c, 3);
  Restart();
  EXPECT_EQ(Open(Lane(0, 2, 4))->seed(), c->seed());
}

// Once all have left, the same names begin anew.
TEST_F(GroupsTest, AGroupEndsWithItsLastMember) {
  const OpenReply a = Found(Lane(0, 2, 1), 1);
  const OpenReply b = *Open(Lane(1, 2, 2));
  for (const auto& [opened, consumer] :
       {std::pair(a, uint64_t{1}), std::pair(b, uint64_t{2})}) {
    ReleaseRequest release;
    *release.mutable_epoch() = opened.epoch();
    release.mutable_opener()->set_consumer(consumer);
    ASSERT_TRUE(state_->Release(release, now_, writes_).ok());
  }
  const auto c = Open(Lane(1, 2, 3));
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->row(), 0);
  EXPECT_NE(c->epoch().run(), b.epoch().run());
  const auto d = Open(Lane(0, 2, 4));
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_NE(d->epoch().run(), a.epoch().run());
  EXPECT_EQ(d->seed(), c->seed());
}

}  // namespace
}  // namespace penstock::service
