#include "penstock/service/worker/worker_server.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/service/worker/local_client_testing.h"
#include "penstock/service/worker/worker_server_testing.h"

namespace penstock::service {
namespace {

using plan::Plan;
using plan_testing::AddConstant;
using plan_testing::Batch;
using plan_testing::ListFiles;
using plan_testing::Map;
using plan_testing::Range;
using plan_testing::Repeat;
using plan_testing::Shuffle;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(WorkerServerTest, GivesWhatAPlainRunGives) {
  Start();
  Offer(Batch(Shuffle(Map(Range(1000), AddConstant(3)), 50), 7), 1000, 100);
  for (uint64_t bundle = 0; bundle < 10; ++bundle) Grant(bundle);
  for (const uint64_t bundle : {3, 0, 9}) {
    const Got got = Read(bundle);
    EXPECT_TRUE(got.status.ok()) << got.status;
    EXPECT_TRUE(got.has_ended);
    EXPECT_EQ(got.items, Expected(bundle)) << bundle;
    EXPECT_TRUE(got.items.back().is_loose);
    EXPECT_NE(got.digest, 0);
  }
  EXPECT_EQ(dispatcher_.num_plans_sent(), 1);
}

TEST_F(WorkerServerTest, PassesAreBundlesToo) {
  Start();
  Offer(Shuffle(Repeat(Map(Range(20), AddConstant(3)), 3), 5), 20, 10, 3);
  for (const uint64_t bundle : {0, 3, 5}) {
    Grant(bundle);
    EXPECT_EQ(Read(bundle).items, Expected(bundle)) << bundle;
  }
  Grant(6);
  EXPECT_EQ(Read(6).status.code(), absl::StatusCode::kOutOfRange);
}

TEST_F(WorkerServerTest, ABrokenReadingGoesOnFromItsCursor) {
  Start();
  // Several frames.
  Offer(Map(Range(100'000), AddConstant(1)), 100'000, 100'000);
  Grant(0);
  const std::vector<ReadItem> expected = Expected(0);
  uint64_t digest = 0;
  {
    const Got whole = Read(0);
    EXPECT_EQ(whole.items, expected);
    digest = whole.digest;
  }
  for (const int frames : {1, 2, 5, 9}) {
    std::vector<ReadItem> items;
    for (int broken = 0; broken < 4; ++broken) {
      const Got got = Read(0, items.size(), frames);
      items.insert(items.end(), got.items.begin(), got.items.end());
    }
    // In the middle of a frame, too.
    if (items.size() > 3) items.resize(items.size() - 3);
    const Got got = Read(0, items.size());
    EXPECT_EQ(got.first, items.size());
    EXPECT_TRUE(got.has_ended);
    EXPECT_EQ(got.digest, digest);
    items.insert(items.end(), got.items.begin(), got.items.end());
    EXPECT_EQ(items, expected) << frames;
  }
  // Past the end, there is the end.
  const Got got = Read(0, expected.size());
  EXPECT_TRUE(got.has_ended);
  EXPECT_THAT(got.items, IsEmpty());
}

TEST_F(WorkerServerTest, ANewReadingTakesThePlaceOfTheOneBefore) {
  Start();
  Offer(Map(Range(1000), AddConstant(1)), 1000, 1000);
  Grant(0);
  TestReading first(worker_->address());
  first.Send(RequestOf(0, 0, 1));
  ASSERT_TRUE(first.Next().has_value());
  EXPECT_EQ(Read(0).items, Expected(0));
  first.AddCredit(kPlenty);
  while (first.Next().has_value()) {
  }
  EXPECT_EQ(first.Finish().code(), absl::StatusCode::kAborted);
}

TEST_F(WorkerServerTest, SendsNoMoreThanItHasCreditFor) {
  Start();
  Offer(Map(Range(200'000), AddConstant(1)), 200'000, 200'000);
  Grant(0);
  TestReading reading(worker_->address());
  reading.Send(RequestOf(0, 0, 0));
  EXPECT_FALSE(reading.NextWithin(std::chrono::milliseconds(200)).has_value());
  Got got;
  while (!got.has_ended) {
    // A frame is begun while there is any credit at all; then there is none.
    reading.AddCredit(1);
    const std::optional<Piece> frame = NextFrame(reading);
    ASSERT_TRUE(frame.has_value());
    Add(frame->header, Copy(frame->bytes), 0, got);
    const uint64_t debt = frame->header.frame_bytes();
    if (got.has_ended) break;
    if (got.frames == 5) {
      EXPECT_FALSE(
          reading.NextWithin(std::chrono::milliseconds(100)).has_value());
    }
    if (debt > 0) reading.AddCredit(debt - 1);
  }
  EXPECT_EQ(got.items, Expected(0));
}

TEST_F(WorkerServerTest, ErrorsOfRowsAreRows) {
  Start();
  Offer(Map(Range(100), engine_testing::FailsWhere(10, 3)), 100, 100);
  Grant(0);
  const Got got = Read(0);
  EXPECT_TRUE(got.status.ok()) << got.status;
  EXPECT_EQ(got.items, Expected(0));
  EXPECT_EQ(got.items[13].text, engine_testing::FailureText());
}

TEST_F(WorkerServerTest, WhatIsNotHeldIsNotFound) {
  Start();
  Offer(Map(Range(100), AddConstant(1)), 100, 10);
  Grant(1);
  EXPECT_EQ(Read(2).status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Read(1).items, Expected(1));
  dispatcher_.Revoke(1);
  dispatcher_.AwaitHeld(0);
  EXPECT_EQ(Read(1).status.code(), absl::StatusCode::kNotFound);
}

TEST_F(WorkerServerTest, AReadingMayComeBeforeItsLease) {
  Start();
  Offer(Map(Range(100), AddConstant(1)), 100, 10);
  dispatcher_.AwaitHeld(0);
  TestReading reading(worker_->address());
  reading.Send(RequestOf(4));
  Grant(4);
  Got got;
  while (const std::optional<Piece> frame = NextFrame(reading)) {
    Add(frame->header, Copy(frame->bytes), 0, got);
  }
  EXPECT_EQ(got.items, Expected(4));
}

TEST_F(WorkerServerTest, RefusesWhatIsMalformed) {
  Start();
  {
    TestReading reading(worker_->address());
    reading.Send(std::string("\xff\xff\xff\xff", 4));
    EXPECT_FALSE(reading.Next().has_value());
    EXPECT_EQ(reading.Finish().code(), absl::StatusCode::kInvalidArgument);
  }
  {
    TestReading reading(worker_->address());
    reading.HalfClose();
    EXPECT_FALSE(reading.Next().has_value());
    EXPECT_EQ(reading.Finish().code(), absl::StatusCode::kInvalidArgument);
  }
  {
    TestReading reading(worker_->address());
    ReadRequest request = RequestOf(0);
    request.set_local_key("a guess");
    reading.Send(request);
    EXPECT_FALSE(reading.Next().has_value());
    EXPECT_EQ(reading.Finish().code(), absl::StatusCode::kAborted);
  }
}

TEST_F(WorkerServerTest, APlanThatIsNotValidIsItsReadersError) {
  Start();
  dispatcher_.AddPlan("plan", "\xff\xff");
  dispatcher_.AddManifest(kManifest, manifest_);
  Grant(0);
  EXPECT_EQ(Read(0).status.code(), absl::StatusCode::kDataLoss);
  Lease lease = LeaseOf(1);
  lease.set_plan("another");
  dispatcher_.Grant(lease);
  EXPECT_EQ(Read(1).status.code(), absl::StatusCode::kNotFound);
}

// x -> zeros, `bytes` of them.
Plan Large(int64_t rows, int64_t bytes) {
  return Batch(Map(Range(rows * (bytes / 8)), AddConstant(1)), bytes / 8);
}

TEST_F(WorkerServerTest, LargeElementsTravelInPieces) {
  Start();
  constexpr int64_t kBytes = int64_t{64} << 20;
  Offer(Large(2, kBytes), kBytes / 8 * 2, kBytes / 8 * 2);
  Grant(0);
  TestReading reading(worker_->address());
  reading.Send(RequestOf(0, 0, 1));  // one frame, however large
  uint64_t position = 0;
  bool has_ended = false;
  while (!has_ended) {
    const std::optional<Piece> frame = NextFrame(reading);
    ASSERT_TRUE(frame.has_value()) << reading.Finish();
    has_ended = frame->header.is_end();
    EXPECT_EQ(frame->header.position(), position);
    position += frame->header.items();
    if (frame->header.items() > 0) {
      EXPECT_GT(frame->header.frame_bytes(), uint64_t{kBytes});
      const auto chunk = Decode(Copy(frame->bytes));
      ASSERT_TRUE(chunk.ok()) << chunk.status();
      EXPECT_EQ(chunk->columns[0].Row<int64_t>(0)[kBytes / 8 - 1],
                static_cast<int64_t>(position) * (kBytes / 8));
    }
    reading.AddCredit(frame->header.frame_bytes());
  }
  EXPECT_EQ(position, 2);
}

TEST_F(WorkerServerTest, FullMemoryHoldsUpOnlyWhatIsNotRead) {
  WorkerServer::Options options;
  options.memory_bytes = 1;  // frames have the least that they can have
  options.max_running = 1;
  Start(options);
  constexpr int64_t kBytes = int64_t{8} << 20;
  constexpr int64_t kRows = kBytes / 8 * 16;
  Offer(Large(64, kBytes), kRows * 4, kRows);
  for (uint64_t bundle = 0; bundle < 4; ++bundle) Grant(bundle);
  // The last is read first, though the others were begun before it.
  for (int bundle = 3; bundle >= 0; --bundle) {
    TestReading reading(worker_->address());
    reading.Send(RequestOf(static_cast<uint64_t>(bundle)));
    uint64_t items = 0;
    while (const std::optional<Piece> frame = NextFrame(reading)) {
      items += frame->header.items();
    }
    EXPECT_EQ(items, 16) << bundle;
    EXPECT_LE(worker_->counters().output_bytes, int64_t{96} << 20);
  }
}

TEST_F(WorkerServerTest, MakesTheManifestOfAnEpoch) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / "worker_manifest";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  for (int i = 0; i < 5; ++i) {
    std::ofstream(directory / absl::StrCat(i, ".txt")) << "line\n";
  }
  Start();
  PlanBundle bundle;
  ListFiles("*.txt").SerializeToString(bundle.mutable_plan());
  bundle.set_directory(directory.string());
  dispatcher_.AddPlan("plan", bundle.SerializeAsString());
  Lease lease = LeaseOf(~uint64_t{0});
  lease.set_is_for_manifest(true);
  dispatcher_.Grant(lease);
  const WorkerBeat beat = dispatcher_.AwaitMade();
  const Manifest& made = beat.made(0).manifest();
  EXPECT_EQ(beat.made(0).error(), "");
  EXPECT_EQ(made.rows(), 5);
  EXPECT_EQ(made.rows_per_bundle(), 1);
  EXPECT_EQ(made.passes(), 1);
  EXPECT_THAT(made.files(), SizeIs(5));
  ASSERT_THAT(made.listings(), SizeIs(1));
  EXPECT_THAT(made.listings(0).files(), SizeIs(5));
  // Taken: it is not said again.
  dispatcher_.AwaitBeat(
      [](const WorkerBeat& beat) { return beat.made_size() == 0; });
}

TEST_F(WorkerServerTest, GoesOnWithoutItsDispatcher) {
  Start();
  Offer(Map(Range(1000), AddConstant(1)), 1000, 100);
  Grant(0);
  Grant(1);
  EXPECT_EQ(Read(0).items, Expected(0));
  dispatcher_.Stop();
  EXPECT_EQ(Read(1).items, Expected(1));
  EXPECT_EQ(Read(0, 7).items, Expected(0, 7));
  dispatcher_.Restart();
  Grant(2);
  EXPECT_EQ(dispatcher_.AwaitHeld(3).term(), 2);
  EXPECT_EQ(Read(2).items, Expected(2));
}

TEST_F(WorkerServerTest, DrainsAtOnceWhatNobodyReads) {
  Start();
  Offer(Map(Range(1000), AddConstant(1)), 1000, 100);
  for (uint64_t bundle = 0; bundle < 6; ++bundle) Grant(bundle);
  dispatcher_.AwaitHeld(6);
  worker_->Drain();
  EXPECT_TRUE(worker_->WaitUntilDrained(absl::Seconds(30)));
  EXPECT_EQ(worker_->counters().held, 0);
  EXPECT_EQ(Read(0).status.code(), absl::StatusCode::kNotFound);
}

TEST_F(WorkerServerTest, AReadingOutlivesTheBeginningOfADrain) {
  Start();
  Offer(Map(Range(200'000), AddConstant(1)), 200'000, 200'000);
  Grant(0);
  TestReading reading(worker_->address());
  reading.Send(RequestOf(0, 0, 1));
  Got got;
  std::optional<Piece> frame = NextFrame(reading);
  ASSERT_TRUE(frame.has_value());
  Add(frame->header, Copy(frame->bytes), 0, got);
  worker_->Drain();
  dispatcher_.AwaitBeat(
      [](const WorkerBeat& beat) { return beat.is_draining(); });
  EXPECT_FALSE(worker_->WaitUntilDrained(absl::ZeroDuration()));
  reading.AddCredit(kPlenty);
  while ((frame = NextFrame(reading)).has_value()) {
    Add(frame->header, Copy(frame->bytes), 0, got);
  }
  EXPECT_TRUE(reading.Finish().ok());
  EXPECT_EQ(got.items, Expected(0));
  // Its client says that it has it.
  dispatcher_.Revoke(0);
  EXPECT_TRUE(worker_->WaitUntilDrained(absl::Seconds(30)));
}

// Its reader may have gone without a word.
TEST_F(WorkerServerTest, WhatWasHadAsAWholeHoldsADrainUpForAMomentOnly) {
  WorkerServer::Options options;
  options.taken_patience = absl::Milliseconds(50);
  options.drain_patience = absl::Seconds(600);
  Start(options);
  Offer(Map(Range(1000), AddConstant(1)), 1000, 100);
  Grant(0);
  EXPECT_EQ(Read(0).items, Expected(0));
  worker_->Drain();
  EXPECT_TRUE(worker_->WaitUntilDrained(absl::Seconds(30)));
}

TEST_F(WorkerServerTest, ASlowReadingIsHandedOverAfterAWholeFrame) {
  WorkerServer::Options options;
  options.drain_patience = absl::Milliseconds(50);
  Start(options);
  Offer(Map(Range(200'000), AddConstant(1)), 200'000, 200'000);
  Grant(0);
  TestReading reading(worker_->address());
  reading.Send(RequestOf(0, 0, 1));
  Got got;
  std::optional<Piece> frame = NextFrame(reading);
  ASSERT_TRUE(frame.has_value());
  Add(frame->header, Copy(frame->bytes), 0, got);
  worker_->Drain();
  EXPECT_TRUE(worker_->WaitUntilDrained(absl::Seconds(30)));
  EXPECT_FALSE(NextFrame(reading).has_value());
  EXPECT_EQ(reading.Finish().code(), absl::StatusCode::kNotFound);
  // Elsewhere it goes on from there.
  Start();
  Grant(0);
  const Got rest = Read(0, got.items.size());
  EXPECT_TRUE(rest.has_ended);
  got.items.insert(got.items.end(), rest.items.begin(), rest.items.end());
  EXPECT_EQ(got.items, Expected(0));
}

TEST_F(WorkerServerTest, AClientOnTheSameHostReadsItsMemory) {
  Start();
  Offer(Map(Range(200'000), AddConstant(1)), 200'000, 100'000);
  Grant(0);
  Grant(1);
  auto client = LocalClient::Connect(worker_->local_socket());
  ASSERT_TRUE(client.ok()) << client.status();
  Got got;
  std::vector<uint64_t> frames;
  {
    TestReading reading(worker_->address());
    ReadRequest request = RequestOf(1);
    request.set_local_key((*client)->key());
    reading.Send(request);
    while (const std::optional<Piece> frame = NextFrame(reading)) {
      const FrameHeader& header = frame->header;
      EXPECT_THAT(frame->bytes, IsEmpty());
      Buffer bytes;
      if (header.items() > 0) {
        ASSERT_TRUE(header.has_place());
        frames.push_back(header.place().frame());
        const auto seen =
            (*client)->Look(header.place().segment(), header.place().offset(),
                            header.plain_bytes());
        ASSERT_TRUE(seen.ok()) << seen.status();
        bytes = *seen;
      }
      Add(header, bytes, 0, got);
      if (frames.size() == 1) {
        ReadRequest released;
        released.add_released(frames.front());
        reading.Send(released);
      }
    }
    EXPECT_TRUE(reading.Finish().ok());
  }
  EXPECT_EQ(got.items, Expected(1));
  // The first one twice.
  for (const uint64_t frame : frames) {
    ASSERT_TRUE((*client)->Release(frame).ok());
  }
  dispatcher_.Revoke(0);
  dispatcher_.Revoke(1);
  dispatcher_.AwaitHeld(0);
  while (worker_->counters().output_bytes > 0) std::this_thread::yield();
}

TEST_F(WorkerServerTest, OnlyWhoMayReadReads) {
  WorkerServer::Options options;
  options.check_caller = [](const grpc::CallbackServerContext&,
                            std::string_view) {
    return absl::UnauthenticatedError("who are you?");
  };
  Start(options);
  Offer(Map(Range(10), AddConstant(1)), 10, 10);
  Grant(0);
  EXPECT_EQ(Read(0).status.code(), absl::StatusCode::kUnauthenticated);
}

}  // namespace
}  // namespace penstock::service
