#include "penstock/service/worker/output_budget.h"

#include <memory>

#include "gtest/gtest.h"

namespace penstock::service {
namespace {

class CountedRun final : public engine::Wakeable {
 public:
  void Wake() override { ++wakes; }
  int wakes = 0;
};

Owner Memory() { return std::make_shared<int>(1); }

TEST(OutputBudgetTest, AFrameCountsAsLongAsSomebodyHoldsIt) {
  const auto budget = OutputBudget::Make(100);
  const auto run = std::make_shared<CountedRun>();
  auto account = budget->Open(run);
  EXPECT_TRUE(account->MayAdd());
  Owner frame = account->Hold(Memory(), 100);
  EXPECT_EQ(budget->used_bytes(), 100);
  EXPECT_FALSE(account->MayAdd());
  Owner other = frame;
  frame.reset();
  EXPECT_EQ(run->wakes, 0);
  other.reset();
  EXPECT_EQ(run->wakes, 1);
  EXPECT_EQ(budget->used_bytes(), 0);
}

TEST(OutputBudgetTest, NoRunTakesWhatIsAnothers) {
  const auto budget = OutputBudget::Make(100);
  const auto first = std::make_shared<CountedRun>();
  const auto second = std::make_shared<CountedRun>();
  auto one = budget->Open(first);
  auto two = budget->Open(second);
  const Owner frame = one->Hold(Memory(), 50);
  EXPECT_FALSE(one->MayAdd()) << "it has its half";
  EXPECT_TRUE(two->MayAdd());
  two.reset();
  EXPECT_EQ(first->wakes, 1) << "its share has grown";
  EXPECT_TRUE(one->MayAdd());
}

TEST(OutputBudgetTest, FramesMayOutliveTheirRun) {
  const auto budget = OutputBudget::Make(100);
  Owner frame;
  {
    const auto run = std::make_shared<CountedRun>();
    frame = budget->Open(run)->Hold(Memory(), 70);
  }
  EXPECT_EQ(budget->used_bytes(), 70);
  frame.reset();
  EXPECT_EQ(budget->used_bytes(), 0);
}

}  // namespace
}  // namespace penstock::service
