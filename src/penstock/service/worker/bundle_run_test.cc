#include "penstock/service/worker/bundle_run.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/base/mutex.h"
#include "penstock/data/chunk_testing.h"
#include "penstock/data/encode.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/engine/bundle_for_test.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/service/worker/bell_testing.h"

namespace penstock::service {
namespace {

using engine_testing::Divided;
using engine_testing::kEpoch;
using engine_testing::kSeed;
using engine_testing::TestEngine;
using plan::Plan;
using plan_testing::AddConstant;
using plan_testing::Batch;
using plan_testing::Map;
using plan_testing::Range;
using plan_testing::Shuffle;
using plan_testing::Take;

class BundleRunTest : public testing::Test {
 protected:
  ~BundleRunTest() override {
    if (run_ != nullptr) run_->Close(absl::CancelledError("over"));
  }

  void Make(const Plan& plan, int64_t begin, int64_t end) {
    divided_ = std::make_unique<Divided>(engine_, plan);
    part_ = engine::PartOf(divided_->division(), begin, end);
    PlanBundle bundle;
    plan.SerializeToString(bundle.mutable_plan());
    BundleRun::Setup setup;
    setup.plan = *MakeReadyPlan(bundle.SerializeAsString());
    setup.part = part_;
    setup.epoch = kEpoch;
    setup.seed = kSeed;
    setup.environment = engine_.environment();
    setup.environment.frames = memory_;
    setup_ = setup;
    BundleRun::Options options;
    options.memory = memory_;
    options.instances = &engine_.instances();
    options.on_computed = [bell = computed_] { bell->Wake(); };
    options.on_stalled = [bell = stalled_](bool is_stalled) {
      if (is_stalled) bell->Wake();
    };
    run_ = std::make_shared<BundleRun>(engine_.environment().executor,
                                       std::move(options));
    run_->Charge(*budget_);
  }

  absl::StatusOr<OutFrame> Next(const std::shared_ptr<Bell>& reader) {
    while (true) {
      auto frame = run_->Take(reader);
      if (!frame.ok()) return frame.status();
      if (frame->has_value()) return **std::move(frame);
      reader->Await();
    }
  }
  // Everything from `from` on.
  std::vector<std::string> Read(uint64_t from, uint64_t* digest = nullptr,
                                bool takes_parts = false) {
    auto reader = std::make_shared<Bell>();
    run_->Attach(reader, from, takes_parts);
    std::vector<std::string> items;
    while (true) {
      absl::StatusOr<OutFrame> frame = Next(reader);
      EXPECT_TRUE(frame.ok()) << frame.status();
      if (!frame.ok()) return items;
      if (frame->items > 0) {
        Buffer bytes(frame->memory, frame->data, frame->chunk_bytes);
        ++num_frames_;
        if (frame->parts != nullptr) {
          ++num_in_parts_;
          EXPECT_EQ(frame->parts->bytes, frame->bytes);
          bytes = Joined(*frame->parts).Slice(0, frame->chunk_bytes);
        }
        std::vector<std::string> texts = ToText(*Decode(bytes));
        for (size_t i = 0; i < texts.size(); ++i) {
          if (frame->position + i < from) continue;
          EXPECT_EQ(frame->position + i, from + items.size());
          items.push_back(std::move(texts[i]));
        }
      }
      if (frame->is_end) {
        if (digest != nullptr) *digest = frame->digest;
        return items;
      }
    }
  }
  std::vector<std::string> Expected(size_t from = 0) {
    std::vector<std::string> items;
    for (const auto& item : engine_testing::ReadItems(*divided_->Start(part_),
                                                      10'000'000, 1'000)) {
      items.push_back(item.text);
    }
    items.erase(items.begin(),
                items.begin() + static_cast<std::ptrdiff_t>(from));
    return items;
  }

  TestEngine engine_;
  const std::shared_ptr<FrameMemory> memory_ = FrameMemory::Make(256 << 20);
  std::shared_ptr<OutputBudget> budget_ = OutputBudget::Make(64 << 20);
  const std::shared_ptr<Bell> computed_ = std::make_shared<Bell>();
  const std::shared_ptr<Bell> stalled_ = std::make_shared<Bell>();
  std::unique_ptr<Divided> divided_;
  engine::RunPart part_;
  std::optional<BundleRun::Setup> setup_;
  std::shared_ptr<BundleRun> run_;
  int num_frames_ = 0;  // with items
  int num_in_parts_ = 0;
};

TEST_F(BundleRunTest, ComputesAheadOfItsReader) {
  Make(Shuffle(Map(Range(5000), AddConstant(1)), 100), 1000, 3000);
  run_->Begin(*setup_);
  computed_->Await();
  EXPECT_TRUE(run_->is_computed());
  EXPECT_FALSE(run_->is_taken());
  EXPECT_EQ(Read(0), Expected());
  EXPECT_TRUE(run_->is_taken());
}

TEST_F(BundleRunTest, LargeRowsStayWhereTheyAreForWhoTakesParts) {
  Make(Batch(Map(Range(1'000'000), AddConstant(1)), 100'000), 0, 1'000'000);
  run_->Begin(*setup_);
  uint64_t whole = 0;
  uint64_t apart = 0;
  EXPECT_EQ(Read(0, &whole), Expected());
  EXPECT_EQ(num_in_parts_, 0);
  num_frames_ = 0;
  EXPECT_EQ(Read(0, &apart, /*takes_parts=*/true), Expected());
  EXPECT_GT(num_in_parts_, 0);
  EXPECT_EQ(num_in_parts_, num_frames_);
  EXPECT_EQ(whole, apart) << "the digest is that of the items";
  EXPECT_EQ(budget_->used_bytes(), 0);
}

TEST_F(BundleRunTest, AReaderMayWaitForTheBeginning) {
  Make(Map(Range(100), AddConstant(1)), 0, 100);
  auto reader = std::make_shared<Bell>();
  run_->Attach(reader, 40, /*takes_parts=*/false);
  EXPECT_FALSE(run_->Take(reader)->has_value());
  run_->Begin(*setup_);
  const auto frame = Next(reader);
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->position, 40) << "nothing was computed before";
}

TEST_F(BundleRunTest, GivesTheSameFromEverywhere) {
  Make(Shuffle(Map(Range(40'000), AddConstant(1)), 100), 0, 40'000);
  run_->Begin(*setup_);
  uint64_t whole = 0;
  EXPECT_EQ(Read(0, &whole), Expected());
  for (const size_t from : {1, 5'000, 39'999, 40'000, 0}) {
    uint64_t digest = 0;
    EXPECT_EQ(Read(from, &digest), Expected(from)) << from;
    EXPECT_EQ(digest, whole);
  }
}

TEST_F(BundleRunTest, StopsWhereItsBudgetEnds) {
  budget_ = OutputBudget::Make(1);
  Make(Map(Range(100'000), AddConstant(1)), 0, 100'000);
  run_->Begin(*setup_);
  stalled_->Await();
  EXPECT_FALSE(run_->is_computed());
  EXPECT_LT(budget_->used_bytes(), 2 << 20);
  EXPECT_EQ(Read(0), Expected()) << "one frame it may always have";
}

TEST_F(BundleRunTest, AFailureIsItsReadersAndIsTriedAgain) {
  Make(Map(Range(100), AddConstant(1)), 0, 100);
  BundleRun::Setup wrong = *setup_;
  wrong.part.node = 99;
  run_->Begin(wrong);
  computed_->Await();
  auto reader = std::make_shared<Bell>();
  run_->Attach(reader, 0, /*takes_parts=*/false);
  EXPECT_EQ(Next(reader).status().code(), absl::StatusCode::kInvalidArgument);
  run_->Begin(*setup_);
  EXPECT_EQ(Read(0), Expected());
}

TEST_F(BundleRunTest, EndsForAllWhenItIsClosed) {
  Make(Map(Range(100), AddConstant(1)), 0, 100);
  auto reader = std::make_shared<Bell>();
  run_->Attach(reader, 0, /*takes_parts=*/false);
  EXPECT_TRUE(run_->is_read());
  run_->Close(absl::NotFoundError("taken back"));
  EXPECT_EQ(Next(reader).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(budget_->used_bytes(), 0);
  run_->Detach(reader);
  EXPECT_FALSE(run_->is_read());
}

TEST_F(BundleRunTest, RowsThatAreComputedInPlaceAreNotCopied) {
  // Numbers of 8 MiB each in one batch, which is built where frames are.
  constexpr int64_t kRows = int64_t{1} << 20;
  Make(plan_testing::Batch(Map(Range(kRows), AddConstant(1)), kRows), 0, kRows);
  run_->Begin(*setup_);
  auto reader = std::make_shared<Bell>();
  run_->Attach(reader, 0, /*takes_parts=*/false);
  const auto frame = Next(reader);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->items, 1);
  EXPECT_TRUE(frame->is_end) << "no other says so";
  EXPECT_LT(memory_->arena().used_bytes(), frame->bytes * 3 / 2);
}

}  // namespace
}  // namespace penstock::service
