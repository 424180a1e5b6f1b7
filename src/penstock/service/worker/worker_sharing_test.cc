#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/io/crc32c.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/service/worker/local_client_testing.h"
#include "penstock/service/worker/worker_server_testing.h"

namespace penstock::service {
namespace {

using plan::Plan;
using plan_testing::AddConstant;
using plan_testing::Batch;
using plan_testing::Map;
using plan_testing::Range;
using plan_testing::Shuffle;
using testing::IsEmpty;

constexpr int64_t kMany = 100'000;

class WorkerSharingTest : public WorkerServerTest {
 protected:
  Lease SharedLease(uint64_t run, uint64_t bundle,
                    Sharing::Policy policy = Sharing::WAIT) {
    Lease lease = LeaseOf(bundle);
    lease.mutable_epoch()->set_run(run);
    lease.mutable_sharing()->set_production(100 + bundle);
    lease.mutable_sharing()->set_policy(policy);
    return lease;
  }
  void GrantTo(uint64_t run, uint64_t bundle,
               Sharing::Policy policy = Sharing::WAIT) {
    dispatcher_.Grant(SharedLease(run, bundle, policy));
  }
  Got ReadAs(uint64_t run, uint64_t bundle, uint64_t from = 0) {
    return Read(bundle, from, 1 << 30, run);
  }
  WorkerReport::Shared Shared() { return worker_->Report().shared(); }
};

TEST_F(WorkerSharingTest, EightReadersGetWhatWasComputedOnce) {
  Start();
  Offer(Shuffle(Map(Range(kMany), AddConstant(3)), 50), kMany, kMany);
  constexpr uint64_t kReaders = 8;
  for (uint64_t run = 1; run <= kReaders; ++run) GrantTo(run, 0);
  std::vector<Got> got(kReaders);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kReaders; ++i) {
    threads.emplace_back([&, i] { got[i] = ReadAs(i + 1, 0); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<ReadItem> expected = Expected(0);
  for (const Got& each : got) {
    EXPECT_TRUE(each.status.ok()) << each.status;
    EXPECT_EQ(each.items, expected);
    EXPECT_EQ(each.digest, got[0].digest);
  }
  EXPECT_EQ(Shared().computed(), 1);
  EXPECT_EQ(worker_->counters().computed, 1);
  EXPECT_EQ(worker_->counters().running, 0);
  EXPECT_GT(Shared().sent_again(), 0);
}

TEST_F(WorkerSharingTest, SharedOrNotTheItemsAreTheSame) {
  Start();
  Offer(Batch(Shuffle(Map(Range(1000), AddConstant(3)), 50), 7), 1000, 100);
  Grant(0);
  GrantTo(2, 0);
  const Got own = Read(0);
  const Got shared = ReadAs(2, 0);
  EXPECT_EQ(own.items, shared.items);
  EXPECT_EQ(own.digest, shared.digest);
  EXPECT_EQ(shared.items, Expected(0));
}

TEST_F(WorkerSharingTest, FramesStayWhenTheLastLeaseHasGone) {
  Start();
  Offer(Map(Range(kMany), AddConstant(1)), kMany, kMany);
  GrantTo(1, 0);
  EXPECT_EQ(ReadAs(1, 0).items, Expected(0));
  dispatcher_.Revoke(0, 0, 1);
  dispatcher_.AwaitHeld(0);
  EXPECT_EQ(Shared().productions(), 1);
  EXPECT_GT(Shared().bytes(), 0);
  GrantTo(2, 0);
  EXPECT_EQ(ReadAs(2, 0, 11).items, Expected(0, 11));
  EXPECT_EQ(Shared().computed(), 1);
  EXPECT_EQ(Shared().evicted_frames(), 0);
}

TEST_F(WorkerSharingTest, WhatIsRevokedOfOneIsReadOnByTheOther) {
  Start();
  Offer(Map(Range(kMany), AddConstant(1)), kMany, kMany);
  GrantTo(1, 0);
  GrantTo(2, 0);
  dispatcher_.AwaitHeld(2);
  TestReading one(worker_->address());
  one.Send(RequestOf(0, 0, 1, 1));
  ASSERT_TRUE(NextFrame(one).has_value());
  TestReading two(worker_->address());
  two.Send(RequestOf(0, 0, 1, 2));
  Got got;
  std::optional<Piece> frame = NextFrame(two);
  ASSERT_TRUE(frame.has_value());
  Add(frame->header, Copy(frame->bytes), 0, got);
  dispatcher_.Revoke(0, 0, 1);
  dispatcher_.AwaitHeld(1);
  EXPECT_FALSE(NextFrame(one).has_value());
  EXPECT_EQ(one.Finish().code(), absl::StatusCode::kNotFound);
  two.AddCredit(kPlenty);
  while ((frame = NextFrame(two)).has_value()) {
    Add(frame->header, Copy(frame->bytes), 0, got);
  }
  EXPECT_EQ(got.items, Expected(0));
  EXPECT_EQ(Shared().computed(), 1);
}

// Elements of a MiB each, as many as `rows`.
Plan Large(int64_t rows) {
  constexpr int64_t kItems = (int64_t{1} << 20) / 8;
  return Batch(Map(Range(rows * kItems), AddConstant(1)), kItems);
}

TEST_F(WorkerSharingTest, AReaderThatStandsStillHoldsOthersUpForATimeOnly) {
  WorkerServer::Options options;
  options.memory_bytes = 1;  // 32 MiB of frames, of which 24 are for many
  options.sharing_patience = absl::Milliseconds(200);
  Start(options);
  constexpr int64_t kRows = 60;
  constexpr int64_t kItems = kRows << 17;
  Offer(Large(kRows), kItems, kItems);
  GrantTo(1, 0);
  GrantTo(2, 0);
  GrantTo(3, 0);  // of a reader that never comes
  dispatcher_.AwaitHeld(3);
  TestReading still(worker_->address());
  still.Send(RequestOf(0, 0, 1, 1));
  ASSERT_TRUE(NextFrame(still).has_value());
  int64_t most = 0;
  const auto count = [&](TestReading& reading) {
    uint64_t items = 0;
    while (const std::optional<FrameHeader> frame = reading.NextHeader()) {
      if (frame->piece_offset() == 0) items += frame->items();
      most = std::max(most, worker_->counters().output_bytes);
    }
    return items;
  };
  TestReading other(worker_->address());
  other.Send(RequestOf(0, 0, kPlenty, 2));
  EXPECT_EQ(count(other), kRows);
  EXPECT_GT(Shared().evicted_frames(), 0);
  // It goes on where it was: that is computed again.
  still.AddCredit(kPlenty);
  EXPECT_EQ(count(still), kRows - 1);
  EXPECT_TRUE(still.Finish().ok());
  EXPECT_EQ(Shared().computed(), 2);
  EXPECT_EQ(Shared().again(), 1);
  EXPECT_LE(most, int64_t{32} << 20);
}

TEST_F(WorkerSharingTest, AReaderThatIsFarBehindReadsFromDisk) {
  WorkerServer::Options options;
  options.memory_bytes = 1;
  options.spill_bytes = int64_t{1} << 30;
  Start(options);
  constexpr int64_t kRows = 60;
  constexpr int64_t kItems = kRows << 17;
  Offer(Large(kRows), kItems, kItems);
  GrantTo(1, 0);
  GrantTo(2, 0);
  dispatcher_.AwaitHeld(2);
  // On the same host, too: what is on disk is sent.
  auto client = LocalClient::Connect(worker_->local_socket());
  ASSERT_TRUE(client.ok()) << client.status();
  TestReading slow(worker_->address());
  ReadRequest request = RequestOf(0, 0, 1, 1);
  request.set_local_key((*client)->key());
  slow.Send(request);
  ASSERT_TRUE(NextFrame(slow).has_value());
  TestReading fast(worker_->address());
  fast.Send(RequestOf(0, 0, kPlenty, 2));
  std::vector<uint32_t> crcs;
  while (const std::optional<Piece> frame = NextFrame(fast)) {
    if (frame->header.items() > 0) crcs.push_back(io::Crc32c(frame->bytes));
  }
  EXPECT_GE(crcs.size(), 20);
  slow.AddCredit(kPlenty);
  size_t next = 1;
  size_t sent = 0;
  while (const std::optional<Piece> frame = NextFrame(slow)) {
    if (frame->header.items() == 0) continue;
    if (!frame->header.has_place()) {
      ++sent;
      ASSERT_LT(next, crcs.size());
      EXPECT_EQ(io::Crc32c(frame->bytes), crcs[next]);
    }
    ++next;
  }
  EXPECT_EQ(next, crcs.size());
  EXPECT_GT(sent, 0);
  EXPECT_EQ(Shared().computed(), 1);
  EXPECT_EQ(Shared().evicted_frames(), 0);
}

TEST_F(WorkerSharingTest, WithSkipASlowReaderMissesSome) {
  WorkerServer::Options options;
  options.memory_bytes = 1;
  Start(options);
  constexpr int64_t kRows = 60;
  constexpr int64_t kItems = kRows << 17;
  Offer(Large(kRows), kItems, kItems);
  GrantTo(1, 0, Sharing::SKIP);
  GrantTo(2, 0, Sharing::SKIP);
  dispatcher_.AwaitHeld(2);
  TestReading fast(worker_->address());
  fast.Send(RequestOf(0, 0, 1, 2));
  TestReading slow(worker_->address());
  slow.Send(RequestOf(0, 0, 1, 1));
  const std::optional<Piece> first = NextFrame(fast);
  const std::optional<Piece> slow_first = NextFrame(slow);
  ASSERT_TRUE(first.has_value());
  ASSERT_TRUE(slow_first.has_value());
  EXPECT_EQ(first->header.position(), 0);
  fast.AddCredit(kPlenty);
  uint64_t next = first->header.items();
  while (const auto frame = fast.NextHeader()) {
    if (frame->piece_offset() > 0) continue;
    EXPECT_EQ(frame->position(), next);
    next += frame->items();
  }
  EXPECT_EQ(next, kRows);
  slow.AddCredit(kPlenty);
  uint64_t missed = slow_first->header.position();
  next = missed + slow_first->header.items();
  while (const auto frame = slow.NextHeader()) {
    if (frame->piece_offset() > 0) continue;
    missed += frame->position() - next;
    next = frame->position() + frame->items();
  }
  EXPECT_EQ(next, kRows);
  EXPECT_GT(missed, 0);
  EXPECT_EQ(Shared().skipped_items(), missed);
  EXPECT_EQ(Shared().computed(), 1);
}

TEST_F(WorkerSharingTest, WhatIsGoneIsSaidToAFollower) {
  Start();
  Offer(Map(Range(1000), AddConstant(1)), 1000, 1000);
  Lease lease = SharedLease(1, 0, Sharing::SKIP);
  lease.mutable_sharing()->set_is_following(true);
  dispatcher_.Grant(lease);
  TestReading reading(worker_->address());
  reading.Send(RequestOf(0));
  const std::optional<Piece> frame = NextFrame(reading);
  ASSERT_TRUE(frame.has_value());
  EXPECT_TRUE(frame->header.is_end());
  EXPECT_TRUE(frame->header.is_gone());
  EXPECT_EQ(frame->header.items(), 0);
  EXPECT_FALSE(NextFrame(reading).has_value());
  EXPECT_TRUE(reading.Finish().ok());
  // Who does not follow has it computed.
  GrantTo(2, 0, Sharing::SKIP);
  EXPECT_EQ(ReadAs(2, 0).items, Expected(0));
}

TEST_F(WorkerSharingTest, LanesComplementEachOther) {
  Start();
  constexpr int64_t kRows = 10'001;
  Offer(Map(Range(kRows), AddConstant(1)), kRows, kRows);
  std::vector<Got> got(3);
  for (uint32_t lane = 0; lane < 3; ++lane) {
    Lease lease = SharedLease(lane + 1, 0);
    lease.mutable_sharing()->set_lanes(3);
    lease.mutable_sharing()->set_lane(lane);
    dispatcher_.Grant(lease);
  }
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] { got[i] = ReadAs(i + 1, 0); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<ReadItem> expected = Expected(0);
  for (size_t lane = 0; lane < 3; ++lane) {
    ASSERT_TRUE(got[lane].status.ok()) << got[lane].status;
    // 3333 rounds, and two spares for each.
    ASSERT_EQ(got[lane].items.size(), 3335);
    EXPECT_EQ(got[lane].digest, got[0].digest);
    for (size_t r = 0; r < 3333; ++r) {
      ASSERT_EQ(got[lane].items[r], expected[3 * r + lane]) << r;
    }
    EXPECT_EQ(got[lane].items[3333], expected[9999]);
    EXPECT_EQ(got[lane].items[3334], expected[10'000]);
  }
  EXPECT_EQ(Shared().computed(), 1);
}

// Nothing that a client has had is sent again by another worker.
TEST_F(WorkerSharingTest, ADrainWaitsForAllWhoRead) {
  Start();
  Offer(Map(Range(kMany), AddConstant(1)), kMany, kMany);
  for (uint64_t run = 1; run <= 3; ++run) GrantTo(run, 0);
  dispatcher_.AwaitHeld(3);
  std::vector<std::unique_ptr<TestReading>> readings;
  std::vector<Got> got(2);
  for (uint64_t i = 0; i < 2; ++i) {
    readings.push_back(std::make_unique<TestReading>(worker_->address()));
    readings[i]->Send(RequestOf(0, 0, 1, i + 1));
    const std::optional<Piece> frame = NextFrame(*readings[i]);
    ASSERT_TRUE(frame.has_value());
    Add(frame->header, Copy(frame->bytes), 0, got[i]);
  }
  worker_->Drain();
  // The third, which nobody reads, goes back at once.
  dispatcher_.AwaitBeat([](const WorkerBeat& beat) {
    return beat.is_draining() && beat.held_size() == 2;
  });
  for (uint64_t i = 0; i < 2; ++i) {
    EXPECT_FALSE(worker_->WaitUntilDrained(absl::ZeroDuration()));
    readings[i]->AddCredit(kPlenty);
    while (const std::optional<Piece> frame = NextFrame(*readings[i])) {
      Add(frame->header, Copy(frame->bytes), 0, got[i]);
    }
    EXPECT_TRUE(readings[i]->Finish().ok());
    EXPECT_EQ(got[i].items, Expected(0));
    dispatcher_.Revoke(0, 0, i + 1);
  }
  EXPECT_TRUE(worker_->WaitUntilDrained(absl::Seconds(30)));
  EXPECT_EQ(Shared().computed(), 1);
}

TEST_F(WorkerSharingTest, ClientsOnTheSameHostLookAtTheSameFrames) {
  Start();
  Offer(Map(Range(kMany), AddConstant(1)), kMany, kMany);
  GrantTo(1, 0);
  GrantTo(2, 0);
  dispatcher_.AwaitHeld(2);
  using Place = std::tuple<uint64_t, uint32_t, uint64_t>;
  std::vector<std::vector<Place>> places(2);
  std::vector<std::vector<uint64_t>> lent(2);
  std::vector<std::unique_ptr<LocalClient>> clients;
  std::vector<Got> got(2);
  for (uint64_t i = 0; i < 2; ++i) {
    auto client = LocalClient::Connect(worker_->local_socket());
    ASSERT_TRUE(client.ok()) << client.status();
    clients.push_back(*std::move(client));
    TestReading reading(worker_->address());
    ReadRequest request = RequestOf(0, 0, kPlenty, i + 1);
    request.set_local_key(clients[i]->key());
    reading.Send(request);
    while (const std::optional<Piece> frame = NextFrame(reading)) {
      const FrameHeader& header = frame->header;
      Buffer bytes;
      if (header.has_place()) {
        const FrameHeader::Place& place = header.place();
        EXPECT_GE(place.segment(), kFirstSharedSegment);
        places[i].emplace_back(header.position(), place.segment(),
                               place.offset());
        lent[i].push_back(place.frame());
        const auto seen = clients[i]->Look(place.segment(), place.offset(),
                                           header.plain_bytes());
        ASSERT_TRUE(seen.ok()) << seen.status();
        bytes = *seen;
      }
      Add(header, bytes, 0, got[i]);
    }
    EXPECT_EQ(got[i].items, Expected(0));
  }
  EXPECT_EQ(places[0], places[1]);
  // They cannot write there.
  const auto fd = clients[0]->SegmentDescriptor(std::get<1>(places[0][0]));
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_EQ(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0),
      MAP_FAILED);
  // One dies, the other lets go: then they are free, and not before.
  for (uint64_t run = 1; run <= 2; ++run) dispatcher_.Revoke(0, 0, run);
  dispatcher_.AwaitHeld(0);
  const int64_t used = worker_->counters().output_bytes;
  clients[0].reset();
  EXPECT_EQ(worker_->counters().output_bytes, used);
  for (const uint64_t frame : lent[1]) {
    ASSERT_TRUE(clients[1]->Release(frame).ok());
  }
  // Nobody holds them but the worker, for who comes later.
  GrantTo(3, 0);
  EXPECT_EQ(ReadAs(3, 0).items, Expected(0));
  EXPECT_EQ(Shared().computed(), 1);
}

TEST_F(WorkerSharingTest, WhoLooksAtManyFramesDoesNotTakeAllMemory) {
  WorkerServer::Options options;
  options.memory_bytes = 1;  // 32 MiB of frames
  Start(options);
  constexpr int64_t kRows = 90;
  constexpr int64_t kItems = kRows << 17;
  Offer(Large(kRows), kItems, kItems);
  GrantTo(1, 0, Sharing::SKIP);
  auto client = LocalClient::Connect(worker_->local_socket());
  ASSERT_TRUE(client.ok()) << client.status();
  Reading reading(worker_->address());
  ReadRequest request = RequestOf(0, 0, kPlenty, 1);
  request.set_local_key((*client)->key());
  reading.Send(request);
  int lent = 0;
  uint64_t next = 0;
  // It releases nothing.
  while (const std::optional<Piece> frame = NextFrame(reading)) {
    EXPECT_EQ(frame->header.position(), next);
    next += frame->header.items();
    lent += frame->header.has_place() ? 1 : 0;
    EXPECT_LE(worker_->counters().output_bytes, int64_t{36} << 20);
  }
  EXPECT_EQ(next, kRows);
  EXPECT_GT(lent, 16);
  EXPECT_LT(lent, 40);
}

TEST_F(WorkerSharingTest, WhatIsNotSharedGetsRoom) {
  WorkerServer::Options options;
  options.memory_bytes = 1;
  Start(options);
  constexpr int64_t kRows = 60;
  constexpr int64_t kItems = kRows << 17;
  Offer(Large(kRows), kItems, kItems / 2);
  GrantTo(1, 0);
  TestReading shared(worker_->address());
  shared.Send(RequestOf(0));
  while (shared.NextHeader().has_value()) {
  }
  EXPECT_GT(Shared().bytes(), 0);
  Lease lease = LeaseOf(1);
  lease.mutable_epoch()->set_run(7);
  dispatcher_.Grant(lease);
  TestReading own(worker_->address());
  own.Send(RequestOf(1, 0, kPlenty, 7));
  uint64_t items = 0;
  while (const auto frame = own.NextHeader()) {
    if (frame->piece_offset() == 0) items += frame->items();
  }
  EXPECT_EQ(items, kRows / 2);
}

}  // namespace
}  // namespace penstock::service
