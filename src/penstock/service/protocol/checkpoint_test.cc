#include "penstock/service/protocol/checkpoint.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

ConsumerState StateOf(uint32_t slot, uint32_t slots) {
  ConsumerState state;
  state.mutable_epoch()->set_run(7);
  state.mutable_epoch()->set_generation(1);
  state.set_job("train");
  state.set_slot(slot);
  state.set_slots(slots);
  return state;
}

void AddDone(uint64_t begin, uint64_t end, ConsumerState& state) {
  Bundles* run = state.add_done();
  run->set_begin(begin);
  run->set_end(end);
}

void AddOpen(uint64_t bundle, uint64_t position, ConsumerState& state) {
  Cursor* cursor = state.add_open();
  cursor->set_bundle(bundle);
  cursor->set_position(position);
}

TEST(Merge, IsTheUnion) {
  ConsumerState a = StateOf(0, 2);
  ConsumerState b = StateOf(1, 2);
  AddDone(0, 2, a);
  AddOpen(4, 10, a);
  AddDone(2, 3, b);
  AddOpen(3, 1, b);
  const auto progress = Merge({b, a});
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_EQ(progress->done.size(), 3);
  EXPECT_THAT(progress->open, ElementsAre(Pair(3, 1), Pair(4, 10)));
}

// What a generation began with and nobody has opened since is not forgotten:
// without it, the second restore in a row repeats items.
TEST(Merge, KeepsWhatTheGenerationBeganWith) {
  ConsumerState state = StateOf(0, 1);
  Bundles* run = state.add_inherited_done();
  run->set_begin(0);
  run->set_end(5);
  Cursor* cursor = state.add_inherited_open();
  cursor->set_bundle(6);
  cursor->set_position(3);
  cursor = state.add_inherited_open();
  cursor->set_bundle(7);
  cursor->set_position(2);
  AddOpen(7, 9, state);
  const auto progress = Merge({state});
  ASSERT_TRUE(progress.ok());
  EXPECT_EQ(progress->done.size(), 5);
  EXPECT_THAT(progress->open, ElementsAre(Pair(6, 3), Pair(7, 9)));
}

// A bundle that one consumer gave back is in the state of the next one, too.
TEST(Merge, TheFartherPositionCounts) {
  ConsumerState a = StateOf(0, 2);
  ConsumerState b = StateOf(1, 2);
  AddOpen(3, 8, a);
  AddOpen(3, 5, b);
  EXPECT_THAT(Merge({a, b})->open, ElementsAre(Pair(3, 8)));
  EXPECT_THAT(Merge({b, a})->open, ElementsAre(Pair(3, 8)));
  AddDone(3, 4, b);
  EXPECT_TRUE(Merge({a, b})->open.empty());
}

TEST(Merge, SaysWhatDoesNotGoTogether) {
  const auto message = [](std::vector<ConsumerState> states) {
    return std::string(Merge(states).status().message());
  };
  EXPECT_THAT(message({}), HasSubstr("without a state"));
  EXPECT_THAT(message({StateOf(0, 2)}), HasSubstr("all 2 consumers"));
  EXPECT_THAT(message({StateOf(0, 2), StateOf(0, 2)}),
              HasSubstr("another one of consumer 0"));
  ConsumerState other = StateOf(1, 2);
  other.mutable_epoch()->set_generation(2);
  EXPECT_THAT(message({StateOf(0, 2), other}), HasSubstr("one checkpoint"));
  ConsumerState began = StateOf(1, 2);
  began.add_inherited_done()->set_end(4);
  EXPECT_THAT(message({StateOf(0, 2), began}), HasSubstr("one generation"));
}

// What another number goes on with, after one that was resized before.
TEST(SplitsOf, AreOfBundlesThatWereBegun) {
  ConsumerState state = StateOf(0, 1);
  state.set_lanes(2);
  AddDone(0, 3, state);
  AddOpen(3, 7, state);
  AddOpen(4, 5, state);
  AddOpen(5, 0, state);  // no round of it was had
  Split* before = state.add_splits();
  before->set_bundle(3);
  before->set_lanes(4);
  before->set_position(6);
  const std::vector<Split> splits = SplitsOf(state);
  ASSERT_EQ(splits.size(), 2);
  EXPECT_EQ(splits[0].lanes(), 4) << "it stays what it was";
  EXPECT_EQ(splits[0].position(), 6);
  EXPECT_EQ(splits[1].bundle(), 4);
  EXPECT_EQ(splits[1].lanes(), 2);
  EXPECT_EQ(splits[1].position(), 5);
}

}  // namespace
}  // namespace penstock::service
