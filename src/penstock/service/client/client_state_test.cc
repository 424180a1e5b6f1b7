#include "penstock/service/client/client_state.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::service {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class ClientStateTest : public testing::Test {
 protected:
  ClientStateTest() {
    settings_.job = "train";
    settings_.plan = "p";
    opened_.mutable_epoch()->set_run(1);
    opened_.mutable_epoch()->set_generation(1);
  }
  ClientState Make(const std::optional<ConsumerState>& resumed = {}) {
    return ClientState(settings_, opened_, resumed);
  }
  static ClientReply Assign(uint64_t bundle, uint64_t attempt,
                            uint64_t from = 0) {
    ClientReply reply;
    ClientReply::Assigned* assigned = reply.add_assigned();
    assigned->set_bundle(bundle);
    assigned->set_attempt(attempt);
    assigned->set_address("w");
    assigned->set_from(from);
    return reply;
  }
  FrameHead Frame(uint64_t bundle, uint64_t position, uint64_t items,
                  bool is_end = false) const {
    return {opened_.epoch(), bundle, 1, position, items, is_end, 99};
  }

  ClientState::Settings settings_;
  OpenReply opened_;
};

TEST_F(ClientStateTest, ReadsWhatItIsAssigned) {
  ClientState client = Make();
  const auto actions = client.OnReply(Assign(3, 10, 4));
  ASSERT_THAT(actions.start, SizeIs(1));
  EXPECT_EQ(actions.start[0].from, 4);
  EXPECT_THAT(client.OnReply(Assign(3, 10, 4)).start, IsEmpty());
  EXPECT_THAT(client.OnReply(Assign(3, 11, 4)).start, SizeIs(1));
}

// Attempts cut their frames in different places.
TEST_F(ClientStateTest, TakesEachItemOnce) {
  ClientState client = Make();
  client.OnReply(Assign(0, 1));
  EXPECT_EQ(client.OnFrame(Frame(0, 0, 4)).take, 4);
  EXPECT_EQ(client.OnFrame(Frame(0, 0, 4)).take, 0);
  const auto taken = client.OnFrame(Frame(0, 2, 5));
  EXPECT_EQ(taken.skip, 2);
  EXPECT_EQ(taken.take, 3);
  EXPECT_TRUE(client.OnFrame(Frame(0, 9, 1)).is_out_of_step);
  EXPECT_EQ(client.OnFrame(Frame(0, 7, 1)).take, 1);
}

TEST_F(ClientStateTest, FramesOfAnotherGenerationAreNotItsOwn) {
  ClientState client = Make();
  client.OnReply(Assign(0, 1));
  FrameHead head = Frame(0, 0, 4);
  head.epoch.set_generation(2);
  EXPECT_EQ(client.OnFrame(head).take, 0);
  EXPECT_EQ(client.OnFrame(Frame(5, 0, 4)).take, 0) << "never assigned";
}

// What an engine holds is lost with it.
TEST_F(ClientStateTest, ReportsWhatTheTrainerHad) {
  ClientState client = Make();
  client.OnReply(Assign(0, 1));
  client.OnFrame(Frame(0, 0, 2, true));
  EXPECT_THAT(client.MakeBeat().finished(), IsEmpty());
  client.Give(0, 2);
  const ConsumerState after = client.Save();
  EXPECT_EQ(after.done_size(), 1);
  EXPECT_THAT(client.MakeBeat().finished(), IsEmpty());
  EXPECT_TRUE(client.OnDelivered(after));
  EXPECT_FALSE(client.OnDelivered(after)) << "no news";
  ASSERT_THAT(client.MakeBeat().finished(), SizeIs(1));
  EXPECT_EQ(client.MakeBeat().finished(0).items(), 2);
  ClientReply taken;
  taken.add_taken(0);
  client.OnReply(taken);
  EXPECT_THAT(client.MakeBeat().finished(), IsEmpty());
  // A restart has forgotten it.
  EXPECT_THAT(client.OnReply(Assign(0, 7)).start, IsEmpty());
  EXPECT_THAT(client.MakeBeat().finished(), SizeIs(1));
}

TEST_F(ClientStateTest, AnotherEngineGoesOnWhereTheTrainerIs) {
  ClientState before = Make();
  before.OnReply(Assign(0, 1));
  before.OnFrame(Frame(0, 0, 5));
  before.Give(0, 3);
  const ConsumerState state = before.Save();
  before.Give(0, 2);  // the trainer never had these
  ClientState client = Make(state);
  const auto actions = client.OnReply(Assign(0, 1));
  ASSERT_THAT(actions.start, SizeIs(1));
  EXPECT_EQ(actions.start[0].from, 3);
}

TEST_F(ClientStateTest, SaysWhatItCannotRead) {
  ClientState client = Make();
  client.OnReply(Assign(0, 1));
  client.OnBroken(0, 2, "another attempt");
  EXPECT_THAT(client.MakeBeat().bad(), IsEmpty());
  client.OnBroken(0, 1, "reset");
  ASSERT_THAT(client.MakeBeat().bad(), SizeIs(1));
  EXPECT_THAT(client.OnReply(Assign(0, 1)).start, IsEmpty());
  EXPECT_THAT(client.OnReply(Assign(0, 2)).start, SizeIs(1));
  EXPECT_THAT(client.MakeBeat().bad(), IsEmpty());
}

TEST_F(ClientStateTest, EndsWhenAllIsGivenAndNothingIsLeft) {
  ClientState client = Make();
  client.OnReply(Assign(0, 1));
  client.OnFrame(Frame(0, 0, 1, true));
  ClientReply nothing;
  nothing.set_phase(ClientReply::NOTHING_LEFT);
  client.OnReply(nothing);
  EXPECT_FALSE(client.has_ended());
  client.Give(0, 1);
  EXPECT_TRUE(client.has_ended());
}

TEST_F(ClientStateTest, AnEmptyBundleIsDoneWithoutAnItem) {
  ClientState client = Make();
  client.OnReply(Assign(0, 1));
  client.OnFrame(Frame(0, 0, 0, true));
  client.OnDelivered(client.Save());
  EXPECT_THAT(client.MakeBeat().finished(), SizeIs(1));
}

TEST_F(ClientStateTest, LeavesWithWhatTheTrainerHad) {
  ClientState client = Make();
  client.OnReply(Assign(0, 1));
  client.OnFrame(Frame(0, 0, 5));
  client.Give(0, 2);
  client.OnDelivered(client.Save());
  client.Give(0, 3);
  const ReleaseRequest release = client.MakeRelease();
  ASSERT_THAT(release.open(), SizeIs(1));
  EXPECT_EQ(release.open(0).position(), 2);
}

TEST_F(ClientStateTest, ADispatcherThatWasReplacedIsNotHeard) {
  ClientState client = Make();
  ClientReply reply = Assign(0, 1);
  reply.set_term(4);
  client.OnReply(reply);
  ClientReply fenced;
  fenced.set_term(3);
  fenced.set_phase(ClientReply::FENCED);
  client.OnReply(fenced);
  EXPECT_TRUE(client.failure().ok());
  fenced.set_term(5);
  EXPECT_THAT(client.OnReply(fenced).stop, SizeIs(1));
  EXPECT_FALSE(client.failure().ok());
}

// At most once: a row that is to come once more may be lost with its worker.
TEST_F(ClientStateTest, AsksWhatBecomesOfBundlesThatItWaitsFor) {
  ClientState client = Make();
  client.Await(7);
  EXPECT_THAT(client.MakeBeat().open(), SizeIs(1));
  EXPECT_FALSE(client.is_over(7));
  ClientReply reply;
  reply.add_dropped(7);
  client.OnReply(reply);
  EXPECT_TRUE(client.is_over(7));
  EXPECT_THAT(client.MakeBeat().open(), IsEmpty());
}

// Rows of a checkpoint's journal may come before those of a bundle that is
// next, whose loose rows they did not wait for: there is no room until that
// comes.
TEST_F(ClientStateTest, InOrderAFullReaderAsksForTheNext) {
  settings_.is_ordered = true;
  ClientState client = Make();
  client.OnReply(Assign(1, 1));
  client.OnFrame(Frame(1, 0, 5));
  client.set_is_full(true);
  EXPECT_EQ(client.NextToTake(), 0);
  EXPECT_GT(client.MakeBeat().want(), 0);
  client.OnReply(Assign(0, 2));
  EXPECT_EQ(client.MakeBeat().want(), 0);
}

// With SKIP, all of a bundle that one has begun to read may go. What has come
// of it is there to be given.
TEST_F(ClientStateTest, WhatHasComeOfABundleThatIsGoneIsGiven) {
  settings_.is_ordered = true;
  settings_.may_skip = true;
  ClientState client = Make();
  client.OnReply(Assign(0, 1));
  EXPECT_EQ(client.OnFrame(Frame(0, 0, 3)).take, 3);
  client.Take(0, 1);
  client.Give(0, 1);
  FrameHead gone = Frame(0, 0, 0, true);
  gone.is_gone = true;
  EXPECT_EQ(client.OnFrame(gone).end, 3);
  EXPECT_EQ(client.NextToTake(), 0);
  ConsumerState state = client.Save();
  ASSERT_THAT(state.open(), SizeIs(1));
  EXPECT_EQ(state.open(0).position(), 1);
  client.Take(0, 2);
  client.Give(0, 2);
  EXPECT_EQ(client.NextToTake(), 1);
  EXPECT_THAT(client.Save().open(), IsEmpty());
}

// What a trainer had before it was restored was not missed if it does not come
// once more.
TEST_F(ClientStateTest, WhatIsToComeOnceMoreIsNotMissed) {
  settings_.may_skip = true;
  ClientState client = Make();
  client.Await(1);
  client.OnReply(Assign(0, 1));
  client.OnReply(Assign(1, 1));
  client.OnFrame(Frame(0, 0, 2));
  client.OnFrame(Frame(0, 3, 1));
  EXPECT_EQ(client.missed_items(), 1);
  client.OnFrame(Frame(1, 2, 1));
  EXPECT_EQ(client.missed_items(), 1);
}

TEST_F(ClientStateTest, SaysHowManyHaveNoRowThatWaits) {
  ClientState client = Make();
  client.OnReply(Assign(0, 1));
  client.OnFrame(Frame(0, 0, 2, true));
  EXPECT_THAT(client.MakeBeat().complete(), SizeIs(1));
  EXPECT_EQ(client.MakeBeat().passed_on(), 0);
  client.Take(0, 2);
  EXPECT_EQ(client.MakeBeat().passed_on(), 1);
}

}  // namespace
}  // namespace penstock::service
