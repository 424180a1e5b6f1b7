#include "penstock/tuner/report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/tuner/measured_testing.h"

namespace penstock::tuner {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A map of 1 ms a row that the user gave one task, on two cores.
std::vector<plan::Snapshot> OneTask(std::optional<uint32_t> stage = {}) {
  TestRun run;
  TestNode decode = Map("decode", 1e-3);
  decode.chosen_by = plan::USER;
  run.nodes = {Source(), decode, Batch(64)};
  run.nodes[0].is_sequential = true;
  run.nodes[2].is_sequential = true;
  for (TestNode& node : run.nodes) node.stage = stage;
  run.rate = 15;
  run.windows = 10;
  std::vector<plan::Snapshot> snapshots = SnapshotsOf(run);
  for (plan::Snapshot& snapshot : snapshots) {
    plan::Knob* knob =
        (*snapshot.mutable_knobs()->mutable_nodes())[snapshot.nodes(1).node()]
            .mutable_parallelism();
    knob->set_value(1);
    knob->set_chosen_by(plan::USER);
    plan::Location* at = snapshot.mutable_nodes(1)->mutable_made_at();
    at->set_file("train.py");
    at->set_line(31);
  }
  return snapshots;
}

TEST(MakeReport, SaysFirstWhatTheUsersOwnKnobsCost) {
  const auto report = MakeReport(OneTask(), {});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_GT(report->fixes_size(), 0);
  const plan::Report::Fix& fix = report->fixes(0);
  EXPECT_EQ(fix.title(),
            "set num_parallel_calls=2 of decode at train.py:31 (you set 1)");
  EXPECT_TRUE(fix.needs_the_user());
  EXPECT_GT(fix.expected().middle(), 1.05 * report->possible().middle());
  EXPECT_EQ(report->knobs().nodes().at(1).parallelism().chosen_by(),
            plan::USER);
}

TEST(MakeReport, LeavesTheUsersKnobsOnlyWhereItMust) {
  plan::Budget budget;
  budget.set_ignore_pins(true);
  const auto report = MakeReport(OneTask(), budget);
  ASSERT_TRUE(report.ok()) << report.status();
  const plan::Knob& knob = report->knobs().nodes().at(1).parallelism();
  EXPECT_EQ(knob.value(), 2);
  EXPECT_EQ(knob.chosen_by(), plan::TUNER);
  for (const plan::Report::Fix& fix : report->fixes()) {
    EXPECT_THAT(fix.title(), testing::Not(HasSubstr("you set")));
  }
}

TEST(MakeReport, NeedsNoShardsForASecondTask) {
  const auto report = MakeReport(OneTask(0), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->wall().kind(), "inline nodes");
  ASSERT_GT(report->fixes_size(), 0);
  EXPECT_THAT(report->fixes(0).title(), HasSubstr("num_parallel_calls"));
  for (const plan::Report::Fix& fix : report->fixes()) {
    EXPECT_THAT(fix.title(), testing::Not(HasSubstr("shards")));
  }
}

TEST(MakeReport, ShowsHowItWent) {
  const std::vector<plan::Snapshot> snapshots = OneTask();
  const auto report = MakeReport(snapshots, {});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->timeline_size(), static_cast<int>(snapshots.size()) - 1);
  double end = report->timeline(0).begin();
  for (const plan::Report::Moment& moment : report->timeline()) {
    EXPECT_EQ(moment.begin(), end);
    EXPECT_GT(moment.end(), moment.begin());
    EXPECT_NEAR(moment.rate(), 15, 1);
    end = moment.end();
  }
  EXPECT_TRUE(report->timeline(0).has_knobs());
  EXPECT_FALSE(report->timeline(1).has_knobs());
}

TEST(MakeReport, RefusesBudgetsThatMeanNothing) {
  for (const double cores : {0.0, -1.0, std::nan("")}) {
    plan::Budget budget;
    budget.set_cores(cores);
    const absl::Status status = MakeReport(OneTask(), budget).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), StartsWith("cores must be"));
  }
}

}  // namespace
}  // namespace penstock::tuner
