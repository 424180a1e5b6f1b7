// Checkpoints that readers go on from, and what is left of epochs.
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/service/dispatcher/dispatcher_state_testing.h"

namespace penstock::service {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class RestoreTest : public DispatcherStateTest {
 protected:
  int64_t timeout_ms() const { return settings_.client_timeout_ms; }
};

TEST_F(RestoreTest, OneWhoseOthersNeverComeIsTold) {
  const OpenReply opened = OpenEpoch(4);
  Beat(opened, 4);
  const OpenRequest request = Restoring(opened, 0, 10);
  EXPECT_EQ(Open(request)->phase(), OpenReply::WAITING);
  EXPECT_THAT(Beat().leases(), IsEmpty()) << "nothing while it waits";
  now_ += timeout_ms() - 1;
  EXPECT_EQ(Open(request)->phase(), OpenReply::WAITING);
  now_ += 1;
  const auto refused = Open(request);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("of consumer 1 within 60"));
  // Those who read before go on.
  EXPECT_EQ(Beat(opened, 4).phase(), ClientReply::OPEN);
  EXPECT_THAT(Beat().leases(), SizeIs(4));
}

TEST_F(RestoreTest, WhoDoesNotAskAnyMoreHoldsNobodyUp) {
  const OpenReply opened = OpenEpoch(4);
  EXPECT_EQ(Open(Restoring(opened, 0, 10))->phase(), OpenReply::WAITING);
  for (int i = 0; i < 3; ++i) {
    now_ += timeout_ms() / 2;
    Beat(opened, 4);
    Tick();
  }
  EXPECT_THAT(Beat().leases(), SizeIs(4));
}

TEST_F(RestoreTest, ARestartWaitsOn) {
  const OpenReply opened = OpenEpoch(4);
  EXPECT_EQ(Open(Restoring(opened, 0, 10))->phase(), OpenReply::WAITING);
  Restart();
  const auto second = Open(Restoring(opened, 1, 11));
  EXPECT_EQ(second->epoch().generation(), opened.epoch().generation() + 1);
}

// Its engine died before it had a row: it still has the state of before.
TEST_F(RestoreTest, WhoHadNothingSinceGoesOn) {
  const OpenReply opened = OpenEpoch(4);
  EXPECT_EQ(Open(Restoring(opened, 0, 10))->phase(), OpenReply::WAITING);
  const auto second = Open(Restoring(opened, 1, 11));
  OpenRequest again = Restoring(opened, 1, 12);
  again.set_is_same_consumer(true);
  const auto reply = Open(again);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->epoch().generation(), second->epoch().generation());
  EXPECT_EQ(Beat(*second, 1, {}, 11, 1).phase(), ClientReply::FENCED);
  EXPECT_EQ(Beat(*reply, 1, {}, 12, 1).phase(), ClientReply::OPEN);
}

// All of them are started again from the same checkpoint.
TEST_F(RestoreTest, ACheckpointThatNobodyHasHadMoreOfServesTwice) {
  const OpenReply opened = OpenEpoch(4);
  EXPECT_EQ(Open(Restoring(opened, 0, 10))->phase(), OpenReply::WAITING);
  const auto before = Open(Restoring(opened, 1, 11));
  const auto first = Open(Restoring(opened, 0, 20));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->epoch().generation(), before->epoch().generation());
  // One has had something: this would undo it for the other.
  ASSERT_EQ(Beat(*first, 1, {}, 20).phase(), ClientReply::OPEN);
  ASSERT_THAT(Beat().leases(), SizeIs(1));
  Beat(*first, 1, {2}, 20);
  EXPECT_EQ(Open(Restoring(opened, 0, 30))->phase(), OpenReply::WAITING);
}

// Of a trainer that was killed: another has gone on from the same checkpoint
// when its call comes.
TEST_F(RestoreTest, ACallThatComesLateTakesNobodysPlace) {
  const OpenReply opened = OpenEpoch(4);
  OpenRequest late = Request(10);
  *late.add_states() = Restoring(opened, 0, 10).states(0);
  late.mutable_states(0)->set_slots(1);
  const uint64_t holder = Ask(late)->replaces();
  EXPECT_NE(holder, 0);
  OpenRequest request = late;
  request.mutable_opener()->set_consumer(20);
  const auto made = Open(request);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->epoch().generation(), opened.epoch().generation() + 1);
  for (const uint64_t known : {uint64_t{0}, holder}) {
    late.set_replaces(known);
    const auto told = Ask(late);
    EXPECT_EQ(told->phase(), OpenReply::WAITING);
    EXPECT_NE(told->replaces(), known);
    EXPECT_EQ(Beat(*made, 1, {}, 20).phase(), ClientReply::OPEN);
  }
  // One that lives says whose place it takes.
  EXPECT_EQ(Open(late)->phase(), OpenReply::OPEN);
  EXPECT_EQ(Beat(*made, 1, {}, 20).phase(), ClientReply::FENCED);
}

// Both are started again from their checkpoint; one goes on, and the other is
// started once more before it has had anything.
TEST_F(RestoreTest, ACheckpointServesTwiceWhereItsOwnHasHadNothing) {
  const OpenReply opened = OpenEpoch(4);
  EXPECT_EQ(Open(Restoring(opened, 0, 10))->phase(), OpenReply::WAITING);
  const auto second = Open(Restoring(opened, 1, 11));
  const auto first = Open(Restoring(opened, 0, 10));
  ASSERT_EQ(first->phase(), OpenReply::OPEN);
  ASSERT_EQ(Beat(*first, 1, {}, 10).phase(), ClientReply::OPEN);
  ASSERT_THAT(Beat().leases(), SizeIs(1));
  Beat(*first, 1, {2}, 10);
  const auto again = Open(Restoring(opened, 1, 21));
  ASSERT_EQ(again->phase(), OpenReply::OPEN);
  EXPECT_EQ(again->epoch().generation(), second->epoch().generation());
  EXPECT_EQ(Beat(*first, 1, {}, 10).phase(), ClientReply::OPEN);
  EXPECT_EQ(Beat(*second, 1, {}, 11, 1).phase(), ClientReply::FENCED);
}

// One reader has gone on since the last restore, the other has not.
TEST_F(RestoreTest, StatesOfTwoGenerationsMayGoTogether) {
  const OpenReply opened = OpenEpoch(4);
  const OpenRequest old = Restoring(opened, 1, 11);
  EXPECT_EQ(Open(Restoring(opened, 0, 10))->phase(), OpenReply::WAITING);
  const auto made = Open(old);
  ASSERT_EQ(made->inherited_done_size(), 1);
  OpenRequest later = Restoring(opened, 0, 20);
  ConsumerState* state = later.mutable_states(0);
  *state->mutable_epoch() = made->epoch();
  *state->mutable_inherited_done() = made->inherited_done();
  state->mutable_done(0)->set_begin(2);
  state->mutable_done(0)->set_end(3);
  EXPECT_EQ(Open(later)->phase(), OpenReply::WAITING);
  EXPECT_EQ(Beat(*made, 1, {}, 11, 1).phase(), ClientReply::FENCED)
      << "it had nothing, and is to bring its state again";
  OpenRequest earlier = old;
  earlier.mutable_opener()->set_consumer(21);
  const auto reply = Open(earlier);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->epoch().generation(), made->epoch().generation() + 1);
  ASSERT_EQ(reply->done_size(), 1);
  EXPECT_EQ(reply->done(0).end(), 3);
}

// A reader of some of the bundles, as if it had had the others.
OpenRequest Brief(OpenRequest request, const OpenReply& opened) {
  request.set_job("brief");
  request.set_is_brief(true);
  ConsumerState* state = request.add_states();
  state->set_job("brief");
  state->set_plan("p");
  state->set_manifest(opened.manifest());
  state->set_slots(1);
  for (const auto& [begin, end] : {std::pair(0, 1), std::pair(3, 4)}) {
    Bundles* done = state->add_inherited_done();
    done->set_begin(begin);
    done->set_end(end);
  }
  return request;
}

TEST_F(RestoreTest, ABriefRunHasTheBundlesThatItsReaderHasNotHad) {
  const OpenReply whole = OpenEpoch(4);
  const auto opened = Open(Brief(Request(7), whole));
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_EQ(opened->phase(), OpenReply::OPEN) << "the manifest is known";
  Beat(*opened, 4, {}, 7);
  const WorkerReply granted = Beat();
  ASSERT_THAT(granted.leases(), SizeIs(2));
  EXPECT_EQ(granted.leases(0).bundle(), 1);
  EXPECT_EQ(granted.leases(1).bundle(), 2);
}

TEST_F(RestoreTest, ABriefRunEndsWithItsReader) {
  const OpenReply whole = OpenEpoch(4);
  const size_t before = Keys("").size();
  const auto opened = Open(Brief(Request(7), whole));
  Beat(*opened, 4, {}, 7);
  Restart();  // it is written down that it is one
  EXPECT_EQ(Beat(*opened, 4, {}, 7).phase(), ClientReply::OPEN);
  ReleaseRequest release;
  *release.mutable_epoch() = opened->epoch();
  release.mutable_opener()->set_consumer(7);
  ASSERT_TRUE(state_->Release(release, now_, writes_).ok());
  Write();
  EXPECT_EQ(state_->FindEpoch("brief", 0), nullptr);
  EXPECT_THAT(Keys(""), SizeIs(before));
  EXPECT_NE(state_->FindEpoch("train", 0), nullptr);
}

TEST_F(RestoreTest, ABriefRunEndsWhenItsReaderIsNotHeardOf) {
  const OpenReply whole = OpenEpoch(4);
  const auto opened = Open(Brief(Request(7), whole));
  Beat(*opened, 4, {}, 7);
  now_ += timeout_ms() - 1;
  Tick();
  EXPECT_NE(state_->FindEpoch("brief", 0), nullptr);
  now_ += 1;
  Tick();
  EXPECT_EQ(state_->FindEpoch("brief", 0), nullptr);
  EXPECT_EQ(Beat(*opened, 4, {}, 7).phase(), ClientReply::FENCED);
}

TEST_F(RestoreTest, RecordsOfDoneBundlesBecomeOne) {
  settings_.most_records = 3;
  Restart();
  const OpenReply opened = OpenEpoch(400);
  std::vector<uint64_t> all;
  for (uint64_t bundle = 0; bundle < 400; ++bundle) {
    Beat(opened, 1);
    WorkerBeat beat;
    beat.set_room(1);
    ASSERT_EQ(Beat(beat).leases(0).bundle(), bundle);
    Beat(opened, 1, {bundle});
  }
  EXPECT_THAT(Keys("done/"), SizeIs(400));
  Tick();
  EXPECT_THAT(Keys("done/"), SizeIs(400 - 256)) << "so many at once";
  Tick();
  EXPECT_THAT(Keys("done/"), IsEmpty()) << "the epoch is over";
  Restart();
  EXPECT_EQ(state_->FindEpoch("train", 0)->done().size(), 400);
  EXPECT_EQ(Beat(opened, 1).phase(), ClientReply::NOTHING_LEFT);
}

TEST_F(RestoreTest, RegisteredPlansStayUntilTheyAreLetGo) {
  state_->AddPlan("q", "plan q", true, now_, writes_);
  ASSERT_TRUE(state_->CheckName("mine", "q").ok());
  state_->SetName("mine", "q", writes_);
  Write();
  now_ += 2 * settings_.unused_timeout_ms;
  Tick();
  Restart();
  EXPECT_EQ(state_->PlanOf("mine"), "q");
  ASSERT_NE(state_->FindPlan("q"), nullptr);
  EXPECT_EQ(state_->CheckName("mine", "p").code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(state_->CheckName("mine", "q").ok());
  EXPECT_EQ(state_->CheckName("a/b", "q").code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(state_->Unregister("mine", now_, writes_).ok());
  Write();
  EXPECT_EQ(state_->Unregister("q", now_, writes_).code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(Keys("name/"), IsEmpty());
  EXPECT_NE(state_->FindPlan("q"), nullptr) << "a job may still read it";
  now_ += 2 * settings_.unused_timeout_ms;
  Tick();
  EXPECT_EQ(state_->FindPlan("q"), nullptr);
}

}  // namespace
}  // namespace penstock::service
