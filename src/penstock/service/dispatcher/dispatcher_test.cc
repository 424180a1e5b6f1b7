#include "penstock/service/dispatcher/dispatcher.h"

#include <memory>
#include <optional>

#include "gtest/gtest.h"
#include "penstock/service/store/memory_store.h"

namespace penstock::service {
namespace {

class FakeClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now_ns; }
  int64_t now_ns = 1'000'000'000;
};

class DispatcherTest : public testing::Test {
 protected:
  DispatcherTest() {
    DurableDispatcher::Options options;
    options.holder = "test";
    options.on_failure = [this](const absl::Status& status) {
      failure_ = status;
    };
    auto made = DurableDispatcher::Make(store_, clock_, options);
    EXPECT_TRUE(made.ok()) << made.status();
    dispatcher_ = *std::move(made);
    dispatcher_->AddPlan("p", "plan", false, [](const auto&) {});
    Settle();
  }
  // Writes all that is due.
  void Settle() {
    clock_.now_ns += 1'000'000'000;
    while (dispatcher_->Poll()) {
    }
  }
  void Open() {
    OpenRequest request;
    request.set_job("train");
    request.set_plan("p");
    request.set_visitation(EXACTLY_ONCE);
    request.set_slots(1);
    opened_.reset();
    dispatcher_->Open(request, [this](const absl::StatusOr<OpenReply>& reply) {
      opened_ = reply;
    });
  }
  void Beat() {
    WorkerBeat beat;
    beat.set_worker(7);
    beat.set_address("w");
    beat.set_room(1);
    answered_.reset();
    dispatcher_->OnWorker(beat, dispatcher_->NowMillis(),
                          [this](const absl::StatusOr<WorkerReply>& reply) {
                            answered_ = reply;
                          });
  }

  FakeClock clock_;
  std::shared_ptr<store::MemoryDisk> disk_ =
      std::make_shared<store::MemoryDisk>();
  store::MemoryStore store_{disk_};
  absl::Status failure_;
  std::optional<absl::StatusOr<OpenReply>> opened_;
  std::optional<absl::StatusOr<WorkerReply>> answered_;
  std::unique_ptr<DurableDispatcher> dispatcher_;  // goes first: it calls back
};

TEST_F(DispatcherTest, AnswersWhenItIsWritten) {
  Open();
  EXPECT_FALSE(opened_.has_value());
  // Nothing of its own to write, and yet it may rest on what was decided.
  Beat();
  EXPECT_FALSE(answered_.has_value());
  Settle();
  ASSERT_TRUE(opened_.has_value());
  EXPECT_TRUE(opened_->ok()) << opened_->status();
  ASSERT_TRUE(answered_.has_value());
  EXPECT_EQ((*answered_)->leases_size(), 1) << "the manifest is to be made";
  Beat();
  EXPECT_TRUE(answered_.has_value()) << "all is written: at once";
}

TEST_F(DispatcherTest, AFullDiskStopsDecisionsAndNothingElse) {
  disk_->SetFull(true);
  Open();
  Settle();
  EXPECT_EQ(opened_->status().code(), absl::StatusCode::kResourceExhausted);
  const absl::Status first = opened_->status();
  Beat();
  Settle();
  EXPECT_EQ(answered_->status().code(), absl::StatusCode::kUnavailable);
  Open();
  EXPECT_EQ(opened_->status(), first) << "who finds it full hears the same";
  EXPECT_TRUE(failure_.ok());
  disk_->SetFull(false);
  dispatcher_->Tick();
  Settle();
  EXPECT_FALSE(dispatcher_->is_disk_full());
  Open();
  Beat();
  Settle();
  EXPECT_TRUE(opened_->ok());
  EXPECT_TRUE(answered_->ok());
  // What was decided when there was no room is there.
  store::MemoryStore again(disk_);
  EXPECT_EQ(again.Scan("run/")->size(), 1);
  EXPECT_EQ(again.Scan("epoch/")->size(), 1);
}

TEST_F(DispatcherTest, AfterAnErrorNobodyIsToldAnything) {
  disk_->FailCommit(1, store::Fault::kErrorAfter);
  Open();
  Settle();
  EXPECT_FALSE(failure_.ok());
  // They ask the one that comes in its place.
  EXPECT_EQ(opened_->status().code(), absl::StatusCode::kUnavailable);
  Beat();
  Settle();
  EXPECT_EQ(answered_->status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(DispatcherTest, AnotherOneTakesItsPlace) {
  store::MemoryStore other(disk_);
  auto newer =
      DurableDispatcher::Make(other, clock_, DurableDispatcher::Options());
  ASSERT_TRUE(newer.ok()) << newer.status();
  EXPECT_GT((*newer)->term(), dispatcher_->term());
  Open();
  Settle();
  EXPECT_EQ(failure_.code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(opened_->ok());
  EXPECT_EQ(other.Scan("run/")->size(), 0);
}

// What it does not know of, the one in its place may know.
TEST_F(DispatcherTest, WhoHasBeenReplacedRefusesNobody) {
  store::MemoryStore other(disk_);
  auto newer =
      DurableDispatcher::Make(other, clock_, DurableDispatcher::Options());
  ASSERT_TRUE(newer.ok()) << newer.status();
  OpenRequest request;
  request.set_job("train");
  request.set_plan("registered meanwhile");
  request.set_slots(1);
  dispatcher_->Open(request, [this](const absl::StatusOr<OpenReply>& reply) {
    opened_ = reply;
  });
  EXPECT_FALSE(opened_.has_value());
  Settle();
  EXPECT_EQ(opened_->status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(failure_.code(), absl::StatusCode::kAborted);
}

TEST_F(DispatcherTest, ARefusalIsHeardOnceItIsKnownToStand) {
  OpenRequest request;
  request.set_job("train");
  request.set_plan("nobody's");
  request.set_slots(1);
  dispatcher_->Open(request, [this](const absl::StatusOr<OpenReply>& reply) {
    opened_ = reply;
  });
  Settle();
  EXPECT_EQ(opened_->status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(failure_.ok());
}

}  // namespace
}  // namespace penstock::service
