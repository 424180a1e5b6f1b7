#include "penstock/tuner/demand.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/tuner/measured_testing.h"

namespace penstock::tuner {
namespace {

using testing::HasSubstr;

TestRun Chain() {
  TestRun run;
  run.nodes = {Source(), Map("map", 1e-3, 500), Batch()};
  run.rate = 20;
  run.consumer_seconds = 0.01;
  return run;
}

TEST(Measure, GivesWhatARootElementCosts) {
  TestRun run = Chain();
  run.unattributed_seconds = 5e-3;
  const Model model = ModelOf(run);
  ASSERT_EQ(model.nodes.size(), 3);
  EXPECT_NEAR(model.rate.value, 20, 1e-3);
  EXPECT_NEAR(model.nodes[1].visits, 64, 1e-6);
  EXPECT_NEAR(model.nodes[1].cpu.value, 0.064, 1e-6);
  EXPECT_NEAR(model.nodes[1].busy.value, 0.064, 1e-6);
  EXPECT_NEAR(model.nodes[1].cpu.error, 0, 1e-8);
  EXPECT_EQ((*model.measured)[1].row_bytes, 500);
  EXPECT_NEAR(model.unattributed.value, 5e-3, 1e-6);
  EXPECT_NEAR(model.used_cores, 20 * (0.064 + 0.005 + 64e-6 + 64e-7), 1e-3);
  EXPECT_NEAR(model.resources.consumer_time->value, 0.01, 1e-6);
  EXPECT_NEAR(*model.consumer_wait_share, 0.5, 1e-6);
}

TEST(Measure, WaitingForOnesOwnTasksIsNotForInput) {
  TestRun run = Chain();
  run.rate = 10;  // 0.64 tasks at work
  std::vector<plan::Snapshot> snapshots = SnapshotsOf(run);
  for (plan::Snapshot& snapshot : snapshots) {
    for (int i : {1, 2}) {
      snapshot.mutable_nodes(i)->set_wait_input_ns(
          static_cast<uint64_t>(0.9 * static_cast<double>(snapshot.time_ns())));
    }
    snapshot.mutable_nodes(2)->clear_active_task_ns();
  }
  const absl::StatusOr<Model> model = Measure(snapshots);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_NEAR((*model->measured)[1].wait_input_share, 0.26, 0.01);
  EXPECT_NEAR((*model->measured)[2].wait_input_share, 0.9, 0.01);
}

TEST(Measure, OneSnapshotIsAWindowAndLessSure) {
  const std::vector<plan::Snapshot> all = SnapshotsOf(Chain());
  const absl::StatusOr<Model> model = Measure({all[0]});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_NEAR(model->nodes[1].cpu.error, 0.1 * 0.064, 1e-6);
}

TEST(Measure, ErrorsComeFromHowWindowsDiffer) {
  std::vector<plan::Snapshot> snapshots = SnapshotsOf(Chain());
  // The second window costs twice as much as the first.
  auto add = [&](size_t from, double factor) {
    for (size_t i = from; i < snapshots.size(); ++i) {
      plan::Snapshot::Node& node = *snapshots[i].mutable_nodes(1);
      node.set_cpu_ns(node.cpu_ns() +
                      static_cast<uint64_t>(64e9 * factor * 1000));
    }
  };
  add(2, 0.5);
  const absl::StatusOr<Model> model = Measure(snapshots);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_GT(model->nodes[1].cpu.error, 0.05 * model->nodes[1].cpu.value);
  EXPECT_LT(model->nodes[1].cpu.error, model->nodes[1].cpu.value);
}

TEST(Measure, BelowAFullCacheNothingCosts) {
  TestRun run = Chain();
  TestNode cache = Map("cache", 1e-6);
  cache.op = plan::Node::kCache;
  cache.cache = plan::CacheCounts();
  run.nodes.insert(run.nodes.begin() + 2, cache);
  EXPECT_GT(ModelOf(run).nodes[1].cpu.value, 0);
  run.nodes[2].cache->set_is_complete(true);
  const Model model = ModelOf(run);
  EXPECT_TRUE(model.nodes[0].is_cached);
  EXPECT_EQ(model.nodes[1].cpu.value, 0);
  EXPECT_GT(model.nodes[2].cpu.value, 0);

  // But for what another branch needs.
  run.nodes[3].inputs = std::vector<uint32_t>{1, 2};
  run.nodes[3].op = plan::Node::kZip;
  EXPECT_GT(ModelOf(run).nodes[1].cpu.value, 0);
}

TEST(Measure, WithoutCpuOfNodesUsesTheProcess) {
  std::vector<plan::Snapshot> snapshots = SnapshotsOf(Chain());
  for (plan::Snapshot& snapshot : snapshots) {
    for (plan::Snapshot::Node& node : *snapshot.mutable_nodes()) {
      node.clear_cpu_ns();
      node.set_self_ns(node.self_ns() * 2);
    }
    snapshot.mutable_process()->clear_unattributed_cpu_ns();
  }
  const absl::StatusOr<Model> model = Measure(snapshots);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_NEAR(model->nodes[1].cpu.value, 0.064, 1e-4);
  EXPECT_EQ(model->unattributed.value, 0);
}

TEST(Measure, LawsOfEarlierRunsAreUsed) {
  MeasureOptions options;
  options.scalings[1] = {0.3, 0};
  const absl::StatusOr<Model> model = Measure(SnapshotsOf(Chain()), options);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->nodes[1].scaling.contention, 0.3);
  EXPECT_EQ(model->nodes[0].scaling.contention, 0.02);
}

TEST(Measure, PutsInputsBeforeUsersInAnyOrder) {
  std::vector<plan::Snapshot> snapshots = SnapshotsOf(Chain());
  for (plan::Snapshot& snapshot : snapshots) {
    snapshot.mutable_nodes()->SwapElements(0, 2);
  }
  const absl::StatusOr<Model> model = Measure(snapshots);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->measured->back().name, "batch");
  for (size_t i = 0; i < model->nodes.size(); ++i) {
    for (int input : model->nodes[i].inputs) {
      EXPECT_LT(input, static_cast<int>(i));
    }
  }
}

TEST(Measure, NodesAreInlineWithWhoPullsThem) {
  TestRun run = Chain();
  run.has_stages = false;
  TestNode prefetch = Map("prefetch", 1e-9);
  prefetch.op = plan::Node::kPrefetch;
  prefetch.buffer_rows = 4;
  run.nodes = {Source(), Map("below", 1e-3), prefetch, Map("above", 1e-3),
               Batch()};
  const Model model = ModelOf(run);
  EXPECT_EQ(model.nodes[0].stage, model.nodes[1].stage);
  EXPECT_NE(model.nodes[1].stage, model.nodes[2].stage);
  EXPECT_EQ(model.nodes[2].stage, model.nodes[3].stage);
  EXPECT_EQ(model.nodes[3].stage, model.nodes[4].stage);
}

TEST(Measure, SaysWhenThereIsNothingToMeasure) {
  EXPECT_EQ(Measure({}).status().code(), absl::StatusCode::kInvalidArgument);
  std::vector<plan::Snapshot> snapshots = SnapshotsOf(Chain());
  snapshots[1] = snapshots[0];
  snapshots[1].set_time_ns(snapshots[0].time_ns() + 1000);
  const absl::Status status =
      Measure(absl::MakeSpan(snapshots).subspan(0, 2)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("measure longer"));
}

}  // namespace
}  // namespace penstock::tuner
