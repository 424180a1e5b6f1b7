// For tests: productions of a plan, and members that read them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/mutex.h"
#include "penstock/data/chunk_testing.h"
#include "penstock/data/encode.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/engine/bundle_for_test.h"
#include "penstock/service/worker/bell_testing.h"
#include "penstock/service/worker/productions.h"

namespace penstock::service {

using Texts = std::vector<std::string>;

inline constexpr uint64_t kProduction = 9;

class SetClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now_; }
  void Advance(absl::Duration by) { now_ += absl::ToInt64Nanoseconds(by); }

 private:
  std::atomic<int64_t> now_{1'000'000'000};
};

// One lease and its reader.
class Member {
 public:
  explicit Member(Productions::Joined joined)
      : frames(std::move(joined.frames)), is_ready(joined.is_ready) {}

  void Attach(uint64_t from) {
    next = from;
    bell = std::make_shared<Bell>();
    frames->Attach(bell, from, /*takes_parts=*/false);
  }
  // The next frame; an error is what it got instead.
  absl::StatusOr<OutFrame> Next() {
    while (true) {
      auto frame = frames->Take(bell);
      if (!frame.ok()) return frame.status();
      if (frame->has_value()) return **std::move(frame);
      bell->Await();
    }
  }
  bool HasNext() {
    auto frame = frames->Take(bell);
    EXPECT_TRUE(frame.ok()) << frame.status();
    if (!frame->has_value()) return false;
    Keep(**frame);
    return true;
  }
  // Takes `count` frames, or all.
  void Read(int count = 1 << 30) {
    for (; count > 0 && !has_end; --count) {
      absl::StatusOr<OutFrame> frame = Next();
      ASSERT_TRUE(frame.ok()) << frame.status();
      Keep(*frame);
    }
  }
  void Keep(const OutFrame& frame) {
    ++num_frames;
    has_end = frame.is_end;
    is_gone = frame.is_gone;
    if (has_end) digest = frame.digest;
    if (frame.position > next) missed += frame.position - next;
    if (frame.items > 0) {
      const Buffer bytes(frame.memory, frame.data, frame.chunk_bytes);
      const Texts texts = ToText(*Decode(bytes));
      ASSERT_EQ(texts.size(), frame.items);
      for (uint64_t i = 0; i < frame.items; ++i) {
        if (frame.position + i < next) continue;
        (frame.is_spare   ? spares
         : frame.is_loose ? loose
                          : items)
            .push_back(texts[i]);
      }
    }
    next = std::max(next, frame.end());
  }

  std::shared_ptr<FrameSource> frames;
  bool is_ready;
  std::shared_ptr<Bell> bell;
  uint64_t next = 0;
  Texts items;
  Texts spares;
  Texts loose;
  int num_frames = 0;
  uint64_t missed = 0;
  uint64_t digest = 0;
  bool has_end = false;
  bool is_gone = false;
};

class ProductionsTest : public testing::Test {
 protected:
  ~ProductionsTest() override {
    if (table_ != nullptr) table_->Close(absl::CancelledError("over"));
  }

  void Make(const plan::Plan& plan, int64_t rows,
            int64_t budget_bytes = int64_t{64} << 20) {
    divided_ = std::make_unique<engine_testing::Divided>(engine_, plan);
    part_ = engine::PartOf(divided_->division(), 0, rows);
    PlanBundle bundle;
    plan.SerializeToString(bundle.mutable_plan());
    setup_.plan = *MakeReadyPlan(bundle.SerializeAsString());
    setup_.part = part_;
    setup_.epoch = engine_testing::kEpoch;
    setup_.seed = engine_testing::kSeed;
    setup_.environment = engine_.environment();
    setup_.environment.frames = memory_;
    budget_ = OutputBudget::Make(budget_bytes);
    Productions::Options options;
    options.executor = engine_.environment().executor;
    options.memory = memory_;
    options.instances = &engine_.instances();
    options.budget = budget_;
    options.patience = absl::Seconds(30);
    options.clock = &clock_;
    if (spill_bytes_ > 0) spill_ = *SpillFile::Make(spill_bytes_);
    options.spill = spill_;
    options.pool = &pool_;
    options.on_computed = [bell = computed_](uint64_t) { bell->Wake(); };
    options.on_stalled = [bell = stalled_](uint64_t, bool is_stalled) {
      if (is_stalled) bell->Wake();
    };
    table_ = Productions::Make(std::move(options));
  }
  static Lease LeaseOf(uint64_t run, Sharing::Policy policy = Sharing::WAIT,
                       uint32_t lanes = 0, uint32_t lane = 0) {
    Lease lease;
    lease.mutable_epoch()->set_run(run);
    Sharing* sharing = lease.mutable_sharing();
    sharing->set_production(kProduction);
    sharing->set_policy(policy);
    sharing->set_lanes(lanes);
    sharing->set_lane(lane);
    return lease;
  }
  Member Join(uint64_t run, Sharing::Policy policy = Sharing::WAIT,
              uint32_t lanes = 0, uint32_t lane = 0) {
    return Member(table_->Join(LeaseOf(run, policy, lanes, lane)));
  }
  void Begin() { table_->Begin(kProduction, setup_); }
  // Time goes by, and is looked at.
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    table_->LookWhoIsLate();
  }
  static void Leave(Member& member) {
    member.frames->Close(absl::NotFoundError("revoked"));
    member.frames.reset();
  }

  Texts Expected(uint64_t from = 0, bool with_loose = true) {
    Texts items;
    for (const auto& item : engine_testing::ReadItems(*divided_->Start(part_),
                                                      10'000'000, 1'000)) {
      if (with_loose || !item.is_loose) items.push_back(item.text);
    }
    items.erase(items.begin(),
                items.begin() + static_cast<std::ptrdiff_t>(from));
    return items;
  }

  engine_testing::TestEngine engine_;
  SetClock clock_;
  const std::shared_ptr<FrameMemory> memory_ = FrameMemory::Make(256 << 20);
  std::shared_ptr<OutputBudget> budget_;
  int64_t spill_bytes_ = 0;
  std::shared_ptr<SpillFile> spill_;
  io::IoPool pool_;
  const std::shared_ptr<Bell> computed_ = std::make_shared<Bell>();
  const std::shared_ptr<Bell> stalled_ = std::make_shared<Bell>();
  std::unique_ptr<engine_testing::Divided> divided_;
  engine::RunPart part_;
  RunSetup setup_;
  std::shared_ptr<Productions> table_;
};

}  // namespace penstock::service
