// Shares that are kept in files: whoever runs them again reads them, and sees
// no difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "penstock/engine/bundle_for_test.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using testing::SizeIs;

constexpr uint64_t kKeptBy = 41;

std::string NewFile() {
  static int number = 0;
  return absl::StrCat(testing::TempDir(), "/kept_shares_", getpid(), "_",
                      ++number);
}

Plan Snapshot(Plan input, const std::string& filename) {
  Node node;
  node.mutable_cache()->set_filename(filename);
  node.mutable_cache()->set_in_shares(true);
  return AppendOrDie({std::move(input)}, std::move(node));
}

// Numbers whose rows a filter leaves out some of, then random ones beside them.
Plan Kept(const std::string& filename) {
  return Map(Snapshot(Filter(Range(100), IsMultipleOf(3)), filename),
             RandomNumber());
}

struct Got {
  Items items;
  uint64_t computed = 0;  // rows of the source
};

Got RunShare(Divided& divided, uint64_t kept_by, int64_t begin, int64_t end) {
  RunPart part = PartOf(divided.division(), begin, end);
  part.kept_by = kept_by;
  part.gives_lineage = true;
  Got got;
  std::shared_ptr<engine::Run> run;
  {
    const std::unique_ptr<Bundle> bundle = divided.Start(part);
    run = bundle->run();
    got.items = ReadItems(*bundle, 1'000);
  }
  got.computed = run->stats[0].rows;
  return got;
}

TEST(KeptSharesTest, AreReadInsteadOfComputed) {
  TestEngine engine;
  Divided divided(engine, Kept(NewFile()));
  ASSERT_TRUE(divided.division().is_kept);
  EXPECT_THAT(divided.division().moved, SizeIs(0));
  const Got first = RunShare(divided, kKeptBy, 10, 40);
  EXPECT_THAT(first.items, SizeIs(10));
  EXPECT_EQ(first.computed, 30);
  const Got again = RunShare(divided, kKeptBy, 10, 40);
  EXPECT_EQ(again.items, first.items);  // random numbers, too
  EXPECT_EQ(again.computed, 0);
  // Another share, and the same of other files.
  EXPECT_EQ(RunShare(divided, kKeptBy, 40, 70).computed, 30);
  EXPECT_EQ(RunShare(divided, kKeptBy + 1, 10, 40).computed, 30);
  EXPECT_EQ(RunShare(divided, kKeptBy, 10, 41).computed, 31);
}

TEST(KeptSharesTest, NobodyWaitsForAWriter) {
  TestEngine engine;
  const Plan plan = Kept(NewFile());
  Divided divided(engine, plan);
  RunPart part = PartOf(divided.division(), 0, 60);
  part.kept_by = kKeptBy;
  part.gives_lineage = true;
  const std::unique_ptr<Bundle> writer = divided.Start(part);
  const Items begun = ReadItems(*writer, 1, 1);
  const Got other = RunShare(divided, kKeptBy, 0, 60);
  EXPECT_THAT(other.items, SizeIs(20));
  EXPECT_EQ(other.computed, 60);
  EXPECT_EQ(other.items[0], begun[0]);
}

TEST(KeptSharesTest, OnlyWhatIsTheSameInEveryPass) {
  const std::string file = NewFile();
  const auto moved = [&](const Plan& plan) {
    return plan::Divide(plan)->moved.size();
  };
  EXPECT_EQ(moved(Snapshot(Map(Range(100), Identity()), file)), 0);
  EXPECT_EQ(moved(Repeat(Snapshot(Map(Range(100), Identity()), file), 2)), 0);
  EXPECT_EQ(moved(Snapshot(Map(Range(100), RandomNumber()), file)), 1);
  EXPECT_EQ(moved(Snapshot(Shuffle(Map(Range(100), Identity()), 10), file)), 1);
  EXPECT_EQ(moved(Snapshot(Batch(Map(Range(100), Identity()), 10), file)), 1);
  EXPECT_EQ(moved(Snapshot(Repeat(Map(Range(100), Identity()), 2), file)), 1);
}

}  // namespace
}  // namespace penstock::engine_testing
