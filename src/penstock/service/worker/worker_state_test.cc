#include "penstock/service/worker/worker_state.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::service {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

Lease LeaseOf(uint64_t bundle, uint64_t attempt) {
  Lease lease;
  lease.mutable_epoch()->set_run(1);
  lease.set_bundle(bundle);
  lease.set_attempt(attempt);
  return lease;
}

WorkerReply Granting(std::vector<Lease> leases) {
  WorkerReply reply;
  for (Lease& lease : leases) *reply.add_leases() = lease;
  return reply;
}

WorkerReply Revoking(uint64_t bundle, uint64_t attempt) {
  WorkerReply reply;
  WorkerBeat::Held* held = reply.add_revoked();
  held->mutable_epoch()->set_run(1);
  held->set_bundle(bundle);
  held->set_attempt(attempt);
  return reply;
}

class WorkerStateTest : public testing::Test {
 protected:
  WorkerState worker_{
      {.worker = 1, .address = "w", .max_held = 3, .max_running = 1}};
};

TEST_F(WorkerStateTest, SaysAllThatItHolds) {
  EXPECT_EQ(worker_.MakeBeat().room(), 3);
  worker_.OnReply(Granting({LeaseOf(0, 1), LeaseOf(1, 2)}));
  const WorkerBeat beat = worker_.MakeBeat();
  EXPECT_THAT(beat.held(), SizeIs(2));
  EXPECT_EQ(beat.room(), 1);
}

// A job with few bundles is for all workers, not for the first that asks.
TEST_F(WorkerStateTest, AsksForMoreAsItComputesThem) {
  WorkerState worker(
      {.worker = 1, .address = "w", .max_held = 5, .max_running = 1});
  EXPECT_EQ(worker.MakeBeat().room(), 3);
  worker.OnReply(Granting({LeaseOf(0, 1), LeaseOf(1, 2), LeaseOf(2, 3)}));
  EXPECT_EQ(worker.MakeBeat().room(), 0);
  worker.OnComputed(*worker.Start());
  EXPECT_EQ(worker.MakeBeat().room(), 2) << "the one's place, and one more";
  for (int i = 0; i < 2; ++i) worker.OnComputed(*worker.Start());
  EXPECT_EQ(worker.MakeBeat().room(), 5);
  WorkerReply all_read = Revoking(0, 1);
  all_read.MergeFrom(Revoking(1, 2));
  all_read.MergeFrom(Revoking(2, 3));
  worker.OnReply(all_read);
  EXPECT_EQ(worker.MakeBeat().room(), 3) << "another job begins";
}

TEST_F(WorkerStateTest, TheSameLeaseTwiceIsOne) {
  worker_.OnReply(Granting({LeaseOf(0, 2)}));
  EXPECT_THAT(worker_.OnReply(Granting({LeaseOf(0, 2)})).added, IsEmpty());
  EXPECT_THAT(worker_.OnReply(Granting({LeaseOf(0, 1)})).added, IsEmpty());
  const auto changes = worker_.OnReply(Granting({LeaseOf(0, 3)}));
  EXPECT_THAT(changes.removed, SizeIs(1));
  EXPECT_THAT(changes.added, SizeIs(1));
}

TEST_F(WorkerStateTest, ComputesAFewAtATime) {
  worker_.OnReply(Granting({LeaseOf(0, 1), LeaseOf(1, 2), LeaseOf(2, 3)}));
  worker_.Hurry(LeaseOf(2, 3).epoch(), 2);
  const auto first = worker_.Start();
  EXPECT_EQ(first->bundle(), 2) << "somebody waits for it";
  EXPECT_EQ(worker_.Start(), std::nullopt);
  worker_.OnComputed(*first);
  EXPECT_EQ(worker_.Start()->bundle(), 0);
  EXPECT_THAT(worker_.MakeBeat().held(), SizeIs(3)) << "it may be read again";
}

TEST_F(WorkerStateTest, WhatAConsumerHasHadSomeOfComesFirst) {
  worker_.OnReply(Granting({LeaseOf(0, 1), LeaseOf(1, 2), LeaseOf(2, 3)}));
  worker_.Hurry(LeaseOf(1, 2).epoch(), 1);
  worker_.Hurry(LeaseOf(2, 3).epoch(), 2, /*from=*/5);
  const auto first = worker_.Start();
  EXPECT_EQ(first->bundle(), 2);
  worker_.OnComputed(*first);
  EXPECT_EQ(worker_.Start()->bundle(), 1);
}

TEST_F(WorkerStateTest, WhatAConsumerHasHadSomeOfWaitsForNoOther) {
  worker_.OnReply(
      Granting({LeaseOf(0, 1), LeaseOf(1, 2), LeaseOf(2, 3), LeaseOf(3, 4)}));
  ASSERT_EQ(worker_.Start()->bundle(), 0);
  worker_.Hurry(LeaseOf(3, 4).epoch(), 3);
  EXPECT_EQ(worker_.Start(), std::nullopt);
  worker_.Hurry(LeaseOf(1, 2).epoch(), 1, /*from=*/5);
  worker_.Hurry(LeaseOf(2, 3).epoch(), 2, /*from=*/5);
  EXPECT_EQ(worker_.Start()->bundle(), 1);
  EXPECT_EQ(worker_.Start(), std::nullopt) << "as many again, and no more";
}

TEST_F(WorkerStateTest, WhatMayHaveNoEndHoldsNobodyUp) {
  Lease whole = LeaseOf(7, 9);
  whole.set_is_whole(true);
  worker_.OnReply(Granting({LeaseOf(0, 1), LeaseOf(1, 2)}));
  ASSERT_EQ(worker_.Start()->bundle(), 0);
  worker_.OnReply(Granting({whole}));
  EXPECT_EQ(worker_.Start()->bundle(), 7);
  EXPECT_EQ(worker_.MakeBeat().room(), 1) << "it takes nobody's place";
  worker_.OnComputed(LeaseOf(0, 1));
  EXPECT_EQ(worker_.Start()->bundle(), 1);
}

TEST_F(WorkerStateTest, WhatWaitsForItsReaderHoldsNobodyUp) {
  worker_.OnReply(Granting({LeaseOf(0, 1), LeaseOf(1, 2)}));
  const auto first = worker_.Start();
  EXPECT_EQ(worker_.Start(), std::nullopt);
  worker_.OnStalled(*first, true);
  EXPECT_TRUE(worker_.MakeBeat().held(0).is_waiting());
  EXPECT_EQ(worker_.Start()->bundle(), 1);
  EXPECT_FALSE(worker_.MakeBeat().held(1).is_waiting());
  worker_.OnStalled(*first, false);
  EXPECT_EQ(worker_.Start(), std::nullopt);
}

// Of run `run`, which shares it with the others.
Lease SharedLease(uint64_t run, uint64_t bundle, uint64_t attempt) {
  Lease lease = LeaseOf(bundle, attempt);
  lease.mutable_epoch()->set_run(run);
  lease.mutable_sharing()->set_production(100 + bundle);
  return lease;
}

TEST_F(WorkerStateTest, LeasesOfOneProductionAreOneComputation) {
  worker_.OnReply(Granting({SharedLease(1, 0, 1), SharedLease(2, 0, 2),
                            SharedLease(1, 1, 3), SharedLease(2, 1, 4)}));
  EXPECT_EQ(worker_.MakeBeat().room(), 1);
  const auto first = worker_.Start();
  EXPECT_EQ(first->bundle(), 0);
  EXPECT_TRUE(worker_.IsStarted(SharedLease(2, 0, 2)));
  EXPECT_EQ(worker_.Start(), std::nullopt);
  worker_.OnStalled(*first, true);
  EXPECT_EQ(worker_.MakeBeat().room(), 2);
  worker_.OnStalled(*first, false);
  worker_.OnComputed(*first);
  EXPECT_EQ(worker_.Start()->bundle(), 1);
  // One that comes later needs no start; of the others, one may go.
  worker_.OnReply(Granting({SharedLease(3, 1, 5), SharedLease(3, 0, 6)}));
  EXPECT_EQ(worker_.Start(), std::nullopt);
  EXPECT_TRUE(worker_.IsStarted(SharedLease(3, 1, 5)));
  worker_.OnReply(Revoking(1, 3));
  worker_.OnComputed(SharedLease(3, 1, 5));
  const WorkerBeat beat = worker_.MakeBeat();
  for (const WorkerBeat::Held& held : beat.held()) {
    EXPECT_TRUE(held.is_started());
    EXPECT_TRUE(held.is_waiting());
  }
  EXPECT_EQ(beat.room(), 3);
}

TEST_F(WorkerStateTest, WhatWasComputedForAnotherNeedsNoStart) {
  worker_.OnReply(Granting({SharedLease(1, 0, 1), LeaseOf(1, 2)}));
  worker_.OnComputed(SharedLease(1, 0, 1));
  EXPECT_TRUE(worker_.IsStarted(SharedLease(1, 0, 1)));
  EXPECT_EQ(worker_.Start()->bundle(), 1);
}

TEST_F(WorkerStateTest, GivesUpWhatIsRevoked) {
  worker_.OnReply(Granting({LeaseOf(0, 4)}));
  EXPECT_THAT(worker_.OnReply(Revoking(0, 3)).removed, IsEmpty());
  EXPECT_THAT(worker_.OnReply(Revoking(0, 4)).removed, SizeIs(1));
  EXPECT_EQ(worker_.Find(LeaseOf(0, 4).epoch(), 0), nullptr);
}

TEST_F(WorkerStateTest, DrainsWithoutARest) {
  worker_.OnReply(Granting({LeaseOf(0, 1), LeaseOf(1, 2)}));
  const auto begun = worker_.Start();
  worker_.Drain();
  WorkerBeat beat = worker_.MakeBeat();
  EXPECT_EQ(beat.room(), 0);
  EXPECT_THAT(beat.held(), SizeIs(1));
  EXPECT_THAT(beat.given_back(), SizeIs(1));
  worker_.OnReply(Revoking(1, 2));
  EXPECT_THAT(worker_.MakeBeat().given_back(), IsEmpty());
  // A grant that was on its way goes back.
  worker_.OnReply(Granting({LeaseOf(7, 9)}));
  EXPECT_THAT(worker_.MakeBeat().given_back(), SizeIs(1));
  worker_.OnReply(Revoking(7, 9));
  EXPECT_FALSE(worker_.is_drained());
  WorkerReply last = Revoking(begun->bundle(), begun->attempt());
  last.set_is_drained(true);
  worker_.OnReply(last);
  EXPECT_TRUE(worker_.is_drained());
}

TEST_F(WorkerStateTest, AManifestIsReportedUntilItIsTaken) {
  Lease lease = LeaseOf(~uint64_t{0}, 5);
  lease.set_is_for_manifest(true);
  worker_.OnReply(Granting({LeaseOf(0, 1), lease}));
  EXPECT_TRUE(worker_.Start()->is_for_manifest()) << "all wait for it";
  Manifest manifest;
  manifest.set_rows(10);
  worker_.OnManifest(lease, manifest);
  EXPECT_THAT(worker_.MakeBeat().made(), SizeIs(1));
  EXPECT_THAT(worker_.OnReply(Granting({lease})).added, IsEmpty());
  WorkerReply taken;
  taken.add_made_taken(5);
  worker_.OnReply(taken);
  EXPECT_THAT(worker_.MakeBeat().made(), IsEmpty());
}

}  // namespace
}  // namespace penstock::service
