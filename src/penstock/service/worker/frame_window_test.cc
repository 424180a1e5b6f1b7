#include "penstock/service/worker/frame_window.h"

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::service {
namespace {

using Policy = FrameWindow::Policy;
using Spare = FrameWindow::Spare;

// Ten items of a byte each.
constexpr uint64_t kItems = 10;
constexpr int64_t kBytes = 10;

class FrameWindowTest : public testing::Test {
 protected:
  OutFrame Frame(const FrameWindow& window) {
    OutFrame frame;
    frame.position = window.next_position();
    frame.items = kItems;
    frame.bytes = kBytes;
    frame.memory = std::make_shared<int>(0);
    return frame;
  }
  void Add(FrameWindow& window, int frames = 1) {
    for (int i = 0; i < frames; ++i) window.Add({Frame(window)});
  }
  // Its position; -1: not yet, -2: it is missing.
  int64_t Take(FrameWindow& window, uint64_t reader) {
    const FrameWindow::Taken taken = window.Take(reader);
    if (taken.is_missing) return -2;
    if (!taken.frame.has_value()) return -1;
    return static_cast<int64_t>(taken.frame->position);
  }
  // The position of what went, or -1.
  int64_t Evict(FrameWindow& window, Spare spare, bool for_itself = false) {
    const auto evicted = window.Evict(spare, for_itself);
    return evicted ? static_cast<int64_t>(evicted->frame.position) : -1;
  }

  FrameWindow wait_{1, Policy::kWait};
  FrameWindow skip_{1, Policy::kSkip};
};

TEST_F(FrameWindowTest, EachReaderHasAllFramesAtItsOwnPace) {
  wait_.Begin(0);
  wait_.AddReader(1, 0, 0);
  wait_.AddReader(2, 0, 15);
  EXPECT_EQ(Take(wait_, 1), -1);
  Add(wait_, 3);
  EXPECT_EQ(Take(wait_, 1), 0);
  EXPECT_EQ(Take(wait_, 2), 10) << "the frame with its first item";
  EXPECT_EQ(Take(wait_, 1), 10);
  wait_.End(77);
  const auto last = wait_.Take(1);
  EXPECT_EQ(last.frame->position, 20);
  EXPECT_TRUE(last.frame->is_end);
  EXPECT_EQ(last.frame->digest, 77);
  EXPECT_TRUE(wait_.has_had_all(1));
  EXPECT_FALSE(wait_.has_had_all(2));
}

TEST_F(FrameWindowTest, AnEndThatComesLaterIsAFrameOfItsOwn) {
  wait_.Begin(0);
  wait_.AddReader(1, 0, 0);
  Add(wait_);
  EXPECT_FALSE(wait_.Take(1).frame->is_end);
  EXPECT_EQ(Take(wait_, 1), -1);
  wait_.End(5);
  const auto end = wait_.Take(1);
  EXPECT_TRUE(end.frame->is_end);
  EXPECT_EQ(end.frame->items, 0);
  EXPECT_EQ(end.frame->position, 10);
}

TEST_F(FrameWindowTest, WaitKeepsWhatSomebodyHasNotHad) {
  wait_.Begin(0);
  wait_.AddReader(1, 0, 0);
  wait_.AddReader(2, 0, 0);
  Add(wait_, 3);
  Take(wait_, 1);
  Take(wait_, 1);
  EXPECT_EQ(Evict(wait_, Spare::kUnneeded), -1);
  EXPECT_EQ(wait_.needed_bytes(), 3 * kBytes);
  Take(wait_, 2);
  EXPECT_EQ(wait_.needed_bytes(), 2 * kBytes);
  EXPECT_EQ(Evict(wait_, Spare::kUnwanted), 0);
  EXPECT_EQ(Evict(wait_, Spare::kUnneeded), -1);
}

TEST_F(FrameWindowTest, NobodyWaitsForWhoIsLate) {
  wait_.Begin(0);
  wait_.AddReader(1, 0, 0);
  wait_.AddReader(2, 0, 0);
  Add(wait_, 2);
  Take(wait_, 1);
  wait_.SetLate(2, true);
  EXPECT_EQ(Evict(wait_, Spare::kUnwanted), -1);
  const auto evicted = wait_.Evict(Spare::kUnneeded, true);
  ASSERT_TRUE(evicted.has_value());
  EXPECT_TRUE(evicted->was_wanted);
  EXPECT_EQ(Take(wait_, 2), -2) << "to be computed again";
  EXPECT_EQ(wait_.next_of(2), 0);
  EXPECT_FALSE(wait_.Covers(0, 0));
  EXPECT_TRUE(wait_.Covers(0, 10));
  EXPECT_EQ(Take(wait_, 1), 10) << "the others go on";
}

TEST_F(FrameWindowTest, NothingIsComputedForThoseAloneWhoAreLate) {
  wait_.Begin(0);
  wait_.AddReader(1, 0, 0);
  wait_.SetLate(1, true);
  Add(wait_, 2);
  EXPECT_FALSE(wait_.is_driven());
  EXPECT_EQ(Evict(wait_, Spare::kUnneeded, /*for_itself=*/true), -1);
  EXPECT_EQ(Evict(wait_, Spare::kUnneeded, /*for_itself=*/false), 0);
}

TEST_F(FrameWindowTest, SkipWaitsForTheFirstReaderOnly) {
  skip_.Begin(0);
  skip_.AddReader(1, 0, 0);
  skip_.AddReader(2, 0, 0);
  Add(skip_, 4);
  EXPECT_EQ(Evict(skip_, Spare::kUnneeded, true), -1) << "nobody had it";
  Take(skip_, 1);
  Take(skip_, 1);
  EXPECT_EQ(skip_.needed_bytes(), 2 * kBytes);
  EXPECT_EQ(Evict(skip_, Spare::kUnneeded, true), 0);
  const auto taken = skip_.Take(2);
  EXPECT_EQ(taken.frame->position, 10);
  EXPECT_EQ(taken.skipped, 10);
  EXPECT_TRUE(taken.was_had);
}

TEST_F(FrameWindowTest, SkipTellsAtTheEndWhatWasMissed) {
  skip_.Begin(0);
  skip_.AddReader(1, 0, 0);
  skip_.AddReader(2, 0, 0);
  Add(skip_, 2);
  Take(skip_, 1);
  Take(skip_, 1);
  while (Evict(skip_, Spare::kUnneeded) >= 0) {
  }
  EXPECT_EQ(Take(skip_, 2), -1);
  skip_.End(1);
  const auto end = skip_.Take(2);
  EXPECT_TRUE(end.frame->is_end);
  EXPECT_EQ(end.frame->position, 20);
  EXPECT_EQ(end.skipped, 20);
}

TEST_F(FrameWindowTest, LanesGoOnTheirOwn) {
  FrameWindow window(2, Policy::kWait);
  window.Begin(0);
  window.AddReader(1, 0, 0);
  window.AddReader(2, 1, 0);
  for (int i = 0; i < 3; ++i) window.Add({Frame(window), Frame(window)});
  OutFrame spare = Frame(window);
  spare.items = 1;
  spare.is_spare = true;
  window.Add({spare});
  window.End(9);
  EXPECT_EQ(Take(window, 1), 0);
  EXPECT_EQ(Take(window, 1), 10);
  EXPECT_EQ(window.num_frames(), 8);
  EXPECT_EQ(Evict(window, Spare::kUnwanted), 0);
  EXPECT_EQ(Evict(window, Spare::kUnwanted), 10);
  EXPECT_EQ(Evict(window, Spare::kUnwanted), -1) << "lane 1 has had nothing";
  for (const int64_t position : {0, 10, 20, 30}) {
    EXPECT_EQ(Take(window, 2), position);
  }
  EXPECT_EQ(Take(window, 1), 20);
  const auto last = window.Take(1);
  EXPECT_TRUE(last.frame->is_spare);
  EXPECT_TRUE(last.frame->is_end);
  EXPECT_EQ(last.frame->memory, spare.memory) << "one frame for all";
}

TEST_F(FrameWindowTest, WhatHasNoReaderStaysUntilItMustGo) {
  wait_.Begin(0);
  wait_.AddReader(1, 0, 0);
  Add(wait_, 2);
  wait_.End(1);
  Take(wait_, 1);
  Take(wait_, 1);
  wait_.RemoveReader(1);
  wait_.AddReader(2, 0, 0);
  EXPECT_EQ(Take(wait_, 2), 0);
  wait_.RemoveReader(2);
  EXPECT_EQ(Evict(wait_, Spare::kUnwanted), 0);
  EXPECT_EQ(Evict(wait_, Spare::kUnwanted), 10);
  EXPECT_EQ(wait_.num_frames(), 0);
}

TEST_F(FrameWindowTest, WhatIsOnDiskTakesNoRoom) {
  const auto file = *SpillFile::Make(1 << 20);
  const std::byte byte{7};
  wait_.Begin(0);
  wait_.AddReader(1, 0, 0);
  wait_.AddReader(2, 0, 0);
  Add(wait_, 5);
  for (int i = 0; i < 3; ++i) Take(wait_, 1);
  Take(wait_, 2);
  EXPECT_EQ(Evict(wait_, Spare::kUnwanted), 0);
  // What somebody has had, and somebody not.
  auto picked = wait_.PickToSpill(1000);
  ASSERT_EQ(picked.size(), 2);
  EXPECT_EQ(picked[0].frame.position, 10);
  EXPECT_EQ(Evict(wait_, Spare::kUnneeded), -1);
  for (const auto& each : picked) {
    EXPECT_NE(wait_.Spilled(each, *file->Write(&byte, 1)), nullptr);
  }
  picked.clear();
  EXPECT_EQ(wait_.needed_bytes(), 2 * kBytes);
  EXPECT_TRUE(wait_.Covers(0, 10));
  const auto taken = wait_.Take(2);
  EXPECT_EQ(taken.frame->position, 10);
  EXPECT_NE(taken.frame->spilled, nullptr);
  EXPECT_EQ(taken.frame->segment, kNoSegment);
  EXPECT_EQ(file->used_bytes(), 2 * 4096) << "the second, and what was taken";
  // Those after it may go before it.
  wait_.SetLate(1, true);
  wait_.SetLate(2, true);
  EXPECT_EQ(Evict(wait_, Spare::kUnneeded), 30);
  EXPECT_EQ(Take(wait_, 2), 20);
  EXPECT_EQ(Take(wait_, 2), -2);
  EXPECT_FALSE(wait_.Covers(0, 30));
  EXPECT_TRUE(wait_.Covers(0, 40));
}

TEST_F(FrameWindowTest, WhatCannotBeReadBackIsMissing) {
  const auto file = *SpillFile::Make(1 << 20);
  const std::byte byte{7};
  wait_.Begin(0);
  wait_.AddReader(1, 0, 0);
  wait_.AddReader(2, 0, 0);
  Add(wait_, 2);
  Take(wait_, 1);
  const auto picked = wait_.PickToSpill(1);
  ASSERT_EQ(picked.size(), 1);
  wait_.KeepUnspilled();
  EXPECT_EQ(wait_.Spilled(picked[0], *file->Write(&byte, 1)), nullptr);
  const auto again = wait_.PickToSpill(1);
  wait_.Spilled(again[0], *file->Write(&byte, 1));
  wait_.LoseSpilled();
  EXPECT_EQ(Take(wait_, 2), -2);
  EXPECT_EQ(Take(wait_, 1), 10);
  EXPECT_EQ(file->used_bytes(), 0);
}

TEST_F(FrameWindowTest, AReaderMayGoBackAsFarAsThereAreFrames) {
  wait_.Begin(20);
  wait_.AddReader(1, 0, 20);
  Add(wait_, 2);
  Take(wait_, 1);
  EXPECT_FALSE(wait_.Covers(0, 19));
  wait_.Seek(1, 25);
  EXPECT_EQ(Take(wait_, 1), 20);
}

}  // namespace
}  // namespace penstock::service
