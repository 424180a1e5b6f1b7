#include "penstock/service/dispatcher/parked_beats.h"

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/base/clock.h"
#include "penstock/service/store/memory_store.h"

namespace penstock::service {
namespace {

constexpr uint64_t kForManifest = ~uint64_t{0};

// A dispatcher, workers and consumers that talk by long polls alone: nothing is
// asked twice without an answer between.
class ParkedBeatsTest : public testing::Test {
 protected:
  ParkedBeatsTest() : beats_(SettingsOf()) {
    DurableDispatcher::Options options;
    options.holder = "test";
    options.on_news = [this](const News& news) { beats_.OnNews(news); };
    auto made = DurableDispatcher::Make(store_, SteadyClock(), options);
    EXPECT_TRUE(made.ok()) << made.status();
    dispatcher_ = *std::move(made);
    dispatcher_->Start();
    beats_.Start(*dispatcher_);
    const auto added = Wait<bool>(
        [&](auto done) { dispatcher_->AddPlan("p", "plan", false, done); });
    EXPECT_TRUE(added.ok()) << added.status();
  }
  ~ParkedBeatsTest() override { beats_.Stop(); }

  // What is not told by news would come only after a minute.
  static ParkedBeats::Settings SettingsOf() {
    ParkedBeats::Settings settings;
    settings.client_wait_ms = 60'000;
    settings.worker_wait_ms = 60'000;
    return settings;
  }

  template <typename Reply, typename Call>
  static absl::StatusOr<Reply> Wait(Call call) {
    std::promise<absl::StatusOr<Reply>> promise;
    call([&](const absl::StatusOr<Reply>& reply) { promise.set_value(reply); });
    return promise.get_future().get();
  }

  // Computes whatever it is given, at once, until `is_over_`.
  void RunWorker(uint64_t id) {
    std::map<std::pair<uint64_t, uint64_t>, WorkerBeat::Held> held;
    std::vector<WorkerBeat::Made> made;
    uint64_t term = 0;
    while (true) {
      WorkerBeat beat;
      beat.set_worker(id);
      beat.set_address("worker");
      beat.set_term(term);
      beat.set_room(4);
      for (const auto& [key, each] : held) *beat.add_held() = each;
      for (const auto& each : made) *beat.add_made() = each;
      const auto reply =
          Wait<WorkerReply>([&](auto done) { beats_.OnWorker(beat, done); });
      if (!reply.ok()) return;
      term = reply->term();
      made.clear();
      for (const auto& each : reply->revoked()) {
        held.erase({each.epoch().run(), each.bundle()});
      }
      for (const Lease& lease : reply->leases()) {
        if (lease.is_for_manifest()) {
          WorkerBeat::Made& each = made.emplace_back();
          *each.mutable_epoch() = lease.epoch();
          each.set_attempt(lease.attempt());
          each.mutable_manifest()->set_rows(bundles_);
          each.mutable_manifest()->set_rows_per_bundle(1);
          each.mutable_manifest()->set_passes(1);
          EXPECT_EQ(lease.bundle(), kForManifest);
          continue;
        }
        WorkerBeat::Held& each = held[{lease.epoch().run(), lease.bundle()}];
        *each.mutable_epoch() = lease.epoch();
        each.set_bundle(lease.bundle());
        each.set_attempt(lease.attempt());
      }
    }
  }

  // Reads all that it is assigned; how many bundles that were.
  uint64_t RunConsumer(const std::string& job, uint32_t slot, uint32_t slots) {
    OpenRequest request;
    request.mutable_opener()->set_consumer(slot + 1);
    request.set_job(job);
    request.set_plan("p");
    request.set_visitation(EXACTLY_ONCE);
    request.set_slot(slot);
    request.set_slots(slots);
    OpenReply opened;
    while (opened.phase() != OpenReply::OPEN) {
      opened = *Wait<OpenReply>(
          [&](auto done) { dispatcher_->Open(request, done); });
      std::this_thread::yield();
    }
    ClientBeat beat;
    *beat.mutable_epoch() = opened.epoch();
    *beat.mutable_opener() = request.opener();
    beat.set_slot(slot);
    beat.set_want(4);
    uint64_t had = 0;
    while (true) {
      const auto reply =
          Wait<ClientReply>([&](auto done) { beats_.OnClient(beat, done); });
      if (!reply.ok()) return had;
      beat.clear_finished();
      beat.set_term(reply->term());
      had += reply->taken_size();
      if (reply->phase() == ClientReply::NOTHING_LEFT) return had;
      for (const auto& assigned : reply->assigned()) {
        beat.add_finished()->set_bundle(assigned.bundle());
      }
    }
  }

  const uint64_t bundles_ = 300;
  store::MemoryStore store_{std::make_shared<store::MemoryDisk>()};
  ParkedBeats beats_;
  std::unique_ptr<DurableDispatcher> dispatcher_;
};

TEST_F(ParkedBeatsTest, NothingIsMissedByThoseWhoWait) {
  constexpr uint32_t kSlots = 3;
  std::vector<std::thread> workers;
  for (uint64_t id = 1; id <= 6; ++id) {
    workers.emplace_back([this, id] { RunWorker(id); });
  }
  std::atomic<uint64_t> had{0};
  std::vector<std::thread> consumers;
  for (const char* job : {"a", "b"}) {
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      consumers.emplace_back(
          [this, job, slot, &had] { had += RunConsumer(job, slot, kSlots); });
    }
  }
  for (std::thread& consumer : consumers) consumer.join();
  EXPECT_EQ(had, 2 * bundles_);
  beats_.Stop();
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(beats_.num_parked(), 0);
}

TEST_F(ParkedBeatsTest, WhoIsForgottenIsToldAgain) {
  ClientBeat beat;
  beat.mutable_epoch()->set_run(1);
  const auto first =
      Wait<ClientReply>([&](auto done) { beats_.OnClient(beat, done); });
  EXPECT_EQ(first->phase(), ClientReply::FENCED);
  // It knows that: the call waits, until its caller goes.
  std::promise<absl::Status> ended;
  const uint64_t call = beats_.OnClient(
      beat, [&](const auto& reply) { ended.set_value(reply.status()); });
  while (beats_.num_parked() == 0) std::this_thread::yield();
  beats_.Forget(KeyOf(beat), call);
  EXPECT_EQ(ended.get_future().get().code(), absl::StatusCode::kCancelled);
  const auto again =
      Wait<ClientReply>([&](auto done) { beats_.OnClient(beat, done); });
  EXPECT_EQ(again->phase(), ClientReply::FENCED);
}

// A dispatcher in a time of its own: nothing happens between Advance()s.
class ParkedBeatsInTimeTest : public testing::Test, private Clock {
 protected:
  static constexpr int64_t kWaitMillis = 5'000;
  static ParkedBeats::Settings SettingsOf() {
    ParkedBeats::Settings settings;
    settings.client_wait_ms = kWaitMillis;
    settings.worker_wait_ms = kWaitMillis;
    return settings;
  }

  ParkedBeatsInTimeTest() : beats_(SettingsOf()) {
    DurableDispatcher::Options options;
    options.holder = "test";
    options.on_news = [this](const News& news) { beats_.OnNews(news); };
    auto made = DurableDispatcher::Make(store_, *this, options);
    EXPECT_TRUE(made.ok()) << made.status();
    dispatcher_ = *std::move(made);
    beats_.Attach(*dispatcher_);
    dispatcher_->AddPlan("p", "plan", false, [](const auto&) {});
    Advance(1);
  }
  ~ParkedBeatsInTimeTest() override { beats_.Stop(); }
  int64_t NowNanos() const override { return now_ms_ * 1'000'000; }

  void Advance(int64_t ms) {
    for (int64_t i = 0; i < ms; ++i) {
      ++now_ms_;
      while (dispatcher_->Poll() || beats_.Poll()) {
      }
    }
  }

  WorkerBeat Work(uint32_t room) const {
    WorkerBeat beat;
    beat.set_worker(7);
    beat.set_address("worker");
    beat.set_term(dispatcher_->term());
    beat.set_room(room);
    return beat;
  }
  void Beat(const WorkerBeat& beat) {
    beats_.OnWorker(beat, [this](const auto& reply) {
      if (reply.ok()) worker_.push_back(*reply);
    });
    while (dispatcher_->Poll()) {
    }
  }
  void Beat(const ClientBeat& beat, bool is_first = false) {
    beats_.OnClient(
        beat,
        [this](const auto& reply) {
          if (reply.ok()) client_.push_back(*reply);
        },
        is_first);
    while (dispatcher_->Poll()) {
    }
  }
  // An epoch of `bundles`, of which the first two are computed by a worker that
  // has no room for more.
  ClientBeat OpenEpoch(uint64_t bundles) {
    OpenRequest request;
    request.mutable_opener()->set_consumer(1);
    request.set_job("a");
    request.set_plan("p");
    request.set_visitation(EXACTLY_ONCE);
    request.set_slots(1);
    OpenReply opened;
    const auto open = [&] {
      dispatcher_->Open(request, [&](const auto& reply) { opened = *reply; });
      Advance(2);
    };
    open();
    Beat(Work(1));
    Advance(2);
    EXPECT_EQ(worker_.back().leases_size(), 1);
    WorkerBeat beat = Work(0);
    WorkerBeat::Made* made = beat.add_made();
    *made->mutable_epoch() = worker_.back().leases(0).epoch();
    made->set_attempt(worker_.back().leases(0).attempt());
    made->mutable_manifest()->set_rows(bundles);
    made->mutable_manifest()->set_rows_per_bundle(1);
    made->mutable_manifest()->set_passes(1);
    Beat(beat);
    Advance(2);
    open();
    EXPECT_EQ(opened.phase(), OpenReply::OPEN);
    ClientBeat reader;
    *reader.mutable_epoch() = opened.epoch();
    *reader.mutable_opener() = request.opener();
    reader.set_want(2);
    reader.set_term(dispatcher_->term());
    Beat(reader);
    Beat(reader);  // the first is answered, and this one waits
    Beat(Work(2));
    Advance(5);
    EXPECT_EQ(worker_.back().leases_size(), 2);
    EXPECT_EQ(client_.back().assigned_size(), 2);
    holding_ = Work(0);
    for (const Lease& lease : worker_.back().leases()) {
      WorkerBeat::Held* held = holding_.add_held();
      *held->mutable_epoch() = lease.epoch();
      held->set_bundle(lease.bundle());
      held->set_attempt(lease.attempt());
    }
    Beat(reader);
    Beat(holding_);
    Advance(500);
    worker_.clear();
    client_.clear();
    return reader;
  }

  store::MemoryStore store_{std::make_shared<store::MemoryDisk>()};
  ParkedBeats beats_;
  std::unique_ptr<DurableDispatcher> dispatcher_;
  int64_t now_ms_ = 1'000'000;
  WorkerBeat holding_;
  std::vector<WorkerReply> worker_;  // what was answered
  std::vector<ClientReply> client_;
};

TEST_F(ParkedBeatsInTimeTest, WhatIsTakenIsSaidWithWhatFollows) {
  ClientBeat reader = OpenEpoch(10);
  // The worker has room: another bundle takes the place of the one that is
  // finished, and both are one answer.
  WorkerBeat roomy = holding_;
  roomy.set_room(1);
  Beat(roomy);
  reader.add_finished()->set_bundle(0);
  reader.set_want(2);
  Beat(reader);
  EXPECT_TRUE(client_.empty());
  Advance(5);
  ASSERT_EQ(client_.size(), 1);
  EXPECT_EQ(client_[0].taken_size(), 1);
  EXPECT_EQ(client_[0].assigned_size(), 2);
}

TEST_F(ParkedBeatsInTimeTest, WhatIsTakenIsSaidLaterIfNothingFollows) {
  ClientBeat reader = OpenEpoch(10);
  reader.add_finished()->set_bundle(0);
  reader.set_want(1);
  Beat(reader);
  // Beats that come meanwhile do not put it off.
  const int64_t wait_ms = ParkedBeats::Settings().taken_ms;
  for (int64_t ms = 0; ms < wait_ms - 10; ms += 10) {
    Advance(10);
    Beat(reader);
  }
  EXPECT_TRUE(client_.empty());
  Advance(20);
  ASSERT_EQ(client_.size(), 1);
  EXPECT_EQ(client_[0].taken_size(), 1);
}

TEST_F(ParkedBeatsInTimeTest, TheEndIsSaidAtOnce) {
  ClientBeat reader = OpenEpoch(2);
  reader.add_finished()->set_bundle(0);
  reader.add_finished()->set_bundle(1);
  Beat(reader);
  ASSERT_EQ(client_.size(), 1);
  EXPECT_EQ(client_[0].phase(), ClientReply::NOTHING_LEFT);
  EXPECT_EQ(client_[0].taken_size(), 2);
}

TEST_F(ParkedBeatsInTimeTest, WhoBeatsAgainAndAgainIsAnsweredAtTimes) {
  const ClientBeat reader = OpenEpoch(10);
  for (int64_t ms = 0; ms < 10 * kWaitMillis; ms += kWaitMillis / 4) {
    Beat(holding_);
    Beat(reader);
    Advance(kWaitMillis / 4);
  }
  EXPECT_GE(worker_.size(), 5);
  EXPECT_LE(worker_.size(), 10);
  EXPECT_GE(client_.size(), 5);
}

TEST_F(ParkedBeatsInTimeTest, OnANewConnectionAllIsToldAgain) {
  const ClientBeat reader = OpenEpoch(10);
  Beat(reader);
  Advance(5);
  EXPECT_TRUE(client_.empty());
  Beat(reader, /*is_first=*/true);
  ASSERT_EQ(client_.size(), 1);
  EXPECT_EQ(client_[0].assigned_size(), 2);
}

}  // namespace
}  // namespace penstock::service
