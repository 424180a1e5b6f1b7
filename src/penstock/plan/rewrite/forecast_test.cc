#include "penstock/plan/rewrite/forecast.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "penstock/plan/fingerprint.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/plan/print.h"
#include "penstock/plan/rewrite/rewrite.h"
#include "penstock/plan/snapshot.h"

namespace penstock::plan_testing {
namespace {

using plan::Snapshot;

Function DoubleSecond() {
  FunctionBuilder f("double_second");
  return f.ReturnTuple({f.Arg(0), f.Call("multiply", {f.Arg(1), f.Int(2)})});
}

Function FirstIsEven() {
  FunctionBuilder f("first_is_even");
  return f.Return(
      f.Call("equal", {f.Call("mod", {f.Arg(0), f.Int(2)}), f.Int(0)}));
}

// As the engine describes a plan without datasets in functions.
std::vector<Snapshot::Node> NodesOf(const Plan& plan) {
  std::vector<Snapshot::Node> nodes(plan.nodes_size());
  for (int i = 0; i < plan.nodes_size(); ++i) {
    plan::Describe(plan, i, nodes[i]);
    nodes[i].set_node(i);
    *nodes[i].mutable_inputs() = plan.nodes(i).inputs();
  }
  return nodes;
}

struct Count {
  uint64_t rows;
  uint64_t cpu_ns;
  uint64_t bytes = 0;
  uint64_t tasks = 1;
  bool is_inline = false;
};

// Two snapshots, the second with twice what the first has.
std::vector<Snapshot> Seen(const Plan& plan, const std::vector<Count>& counts) {
  std::vector<Snapshot> seen(2);
  for (int s = 0; s < 2; ++s) {
    Snapshot& snapshot = seen[s];
    snapshot.set_version(plan::kSnapshotVersion);
    snapshot.set_fingerprint(plan::Fingerprint(plan));
    snapshot.set_time_ns(1'000'000'000 * (s + 1));
    snapshot.set_root(plan.nodes_size() - 1);
    snapshot.mutable_machine()->set_cores(2);
    uint64_t cpu = 1000 * (s + 1);
    snapshot.mutable_process()->set_unattributed_cpu_ns(cpu);
    const std::vector<Snapshot::Node> nodes = NodesOf(plan);
    for (size_t i = 0; i < nodes.size(); ++i) {
      Snapshot::Node& node = *snapshot.add_nodes() = nodes[i];
      node.set_rows(counts[i].rows * (s + 1));
      node.set_bytes(counts[i].bytes * (s + 1));
      node.set_cpu_ns(counts[i].cpu_ns * (s + 1));
      node.set_self_ns(counts[i].cpu_ns * (s + 1));
      node.set_parallelism(counts[i].tasks);
      if (counts[i].is_inline) node.set_max_parallelism(1);
      cpu += counts[i].cpu_ns * (s + 1);
    }
    snapshot.mutable_process()->set_engine_cpu_ns(cpu);
  }
  return seen;
}

// The last snapshot of the plan with this pass, by name.
std::map<std::string, Snapshot::Node> After(const Plan& plan,
                                            const std::vector<Count>& counts,
                                            const std::string& pass,
                                            Snapshot* last = nullptr) {
  const std::vector<Snapshot> seen = Seen(plan, counts);
  plan::RewriteOptions options;
  options.only = {pass};
  options.measured = plan::MeasuredOf(seen.back());
  const auto rewritten = plan::Rewrite(plan, options);
  EXPECT_TRUE(rewritten.ok() && !rewritten->applied.empty());
  plan::Planned planned;
  planned.plan = &rewritten->plan;
  planned.fingerprint = plan::Fingerprint(rewritten->plan);
  planned.nodes = NodesOf(rewritten->plan);
  planned.root = static_cast<uint32_t>(planned.nodes.size()) - 1;
  const std::vector<Snapshot> made = plan::Forecast(seen, planned);
  EXPECT_EQ(made.size(), 2u);
  std::map<std::string, Snapshot::Node> nodes;
  for (const Snapshot& snapshot : made) {
    EXPECT_TRUE(plan::ValidateSnapshot(snapshot).ok());
  }
  EXPECT_TRUE(plan::WindowBetween(made[0], made[1]).ok());
  for (const Snapshot::Node& node : made[1].nodes()) nodes[node.name()] = node;
  if (last != nullptr) *last = made[1];
  return nodes;
}

TEST(ForecastTest, AMapAfterAFilterSeesFewerRows) {
  // Of 1,000 rows, the filter lets 100 through.
  const Plan plan =
      Filter(Map(Enumerate(Range(10)), DoubleSecond()), FirstIsEven());
  Snapshot last;
  const auto nodes =
      After(plan, {{1000, 10}, {1000, 20}, {1000, 50'000}, {100, 300}},
            "push_filter", &last);
  EXPECT_EQ(nodes.at("map_2").rows(), 200u);
  EXPECT_EQ(nodes.at("map_2").cpu_ns(), 10'000u);
  EXPECT_EQ(nodes.at("filter_3").rows(), 200u);
  EXPECT_EQ(nodes.at("filter_3").cpu_ns(), 600u);  // asked as often
  EXPECT_EQ(nodes.at("enumerate_1").rows(), 2000u);
  // What is saved is not the process's either.
  EXPECT_EQ(last.process().engine_cpu_ns(), 2000u + 20 + 40 + 10'000 + 600);
}

TEST(ForecastTest, TheSmallPartOfAMapThatAFilterDoesIsNotCounted) {
  FunctionBuilder f("labelled");
  const auto many = f.Constant(Vector(std::vector<int64_t>(1000, 1)));
  const Function labelled =
      f.ReturnTuple({f.Call("add", {f.Arg(0), f.Int(1)}),
                     f.Call("multiply", {f.Arg(0), many})});
  const Plan plan = Filter(Map(Range(10), labelled), FirstIsEven());
  const auto nodes =
      After(plan, {{1000, 10}, {1000, 50'000}, {100, 300}}, "push_filter");
  EXPECT_EQ(nodes.at("map_1").rows(), 200u);
  EXPECT_EQ(nodes.at("map_1").cpu_ns(), 10'000u);
  EXPECT_EQ(nodes.at("filter_2").cpu_ns(), 600u);
}

TEST(ForecastTest, OneNodeDoesTheWorkOfTwo) {
  FunctionBuilder f("add"), g("multiply");
  const Plan plan =
      Map(Map(Range(10), f.Return(f.Call("add", {f.Arg(0), f.Int(1)}))),
          g.Return(g.Call("multiply", {g.Arg(0), g.Int(3)})));
  const auto nodes =
      After(plan, {{100, 10}, {100, 1000}, {100, 500}}, "fuse_maps");
  EXPECT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes.at("map_2").cpu_ns(), 3000u);
  EXPECT_EQ(nodes.at("map_2").rows(), 200u);
}

// Chunks of the cheap one were not worth handing over: those of both are.
TEST(ForecastTest, OneNodeHasTheTasksOfTheCostlier) {
  const Plan plan = Map(Map(Range(10), AddConstant(1)), MultiplyBy(3));
  const Count cheap = {.rows = 100, .cpu_ns = 10, .is_inline = true};
  const Count costly = {.rows = 100, .cpu_ns = 9000, .tasks = 64};
  for (const auto& counts : {std::vector<Count>{{100, 10}, costly, cheap},
                             std::vector<Count>{{100, 10}, cheap, costly}}) {
    const auto nodes = After(plan, counts, "fuse_maps");
    EXPECT_EQ(nodes.at("map_2").parallelism(), 64u);
    EXPECT_FALSE(nodes.at("map_2").has_max_parallelism());
  }
}

TEST(ForecastTest, WhatIsGoneCostsNothing) {
  const Plan plan = Unbatch(Batch(Range(10), 5));
  Snapshot last;
  const auto nodes =
      After(plan, {{100, 10}, {20, 1000}, {100, 1000}}, "drop_no_ops", &last);
  EXPECT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes.at("range_0").rows(), 200u);
  EXPECT_EQ(last.process().engine_cpu_ns(), 2020u);
}

TEST(ForecastTest, NothingCostsMoreThanItDid) {
  // The map sees rows now, not batches of five.
  FunctionBuilder f("add");
  const Plan plan = Unbatch(
      Map(Batch(Range(10), 5), f.Return(f.Call("add", {f.Arg(0), f.Int(1)}))));
  const auto nodes = After(
      plan, {{100, 10}, {20, 1000}, {20, 700}, {100, 1000}}, "vectorize_pairs");
  EXPECT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes.at("map_2").rows(), 200u);
  EXPECT_EQ(nodes.at("map_2").cpu_ns(), 1400u);
}

TEST(ForecastTest, WhatIsNotComputedCostsNothing) {
  FunctionBuilder f("first");
  const Plan plan = Map(Shuffle(Map(Enumerate(Range(10)), DoubleSecond()), 5),
                        f.Return(f.Arg(0)));
  const auto nodes =
      After(plan, {{100, 10}, {100, 10}, {100, 7000}, {100, 50}, {100, 5}},
            "project_early");
  EXPECT_EQ(nodes.at("map_2").cpu_ns(), 0u);
  EXPECT_EQ(nodes.at("map_2").rows(), 200u);
}

TEST(ForecastTest, AShuffleCopiesWhatItHolds) {
  FunctionBuilder f("spread");
  std::vector<int64_t> many(1000, 1);
  const Plan plan = Shuffle(
      Map(Range(10),
          f.Return(f.Call("multiply", {f.Arg(0), f.Constant(Vector(many))}))),
      4, 1);
  const auto nodes =
      After(plan, {{100, 10, 800}, {100, 500, 800'000}, {100, 80'000, 800'000}},
            "shuffle_before_decode");
  EXPECT_EQ(nodes.at("shuffle_2").bytes(), 1600u);
  EXPECT_EQ(nodes.at("shuffle_2").cpu_ns(), 160u);
  EXPECT_EQ(nodes.at("map_1").bytes(), 1'600'000u);
  EXPECT_EQ(nodes.at("map_1").cpu_ns(), 1000u);
}

TEST(ForecastTest, KnobsGoWithTheirNodes) {
  const Plan plan = Batch(Take(Range(10), 99), 5);
  plan::RewriteOptions options;
  options.only = {"drop_no_ops"};
  const auto rewritten = plan::Rewrite(plan, options);
  ASSERT_TRUE(rewritten.ok());
  plan::Planned planned;
  planned.plan = &rewritten->plan;
  planned.nodes = NodesOf(rewritten->plan);
  planned.root = 1;
  std::vector<Snapshot> seen = Seen(plan, {{9, 1}, {9, 1}, {2, 1}});
  for (Snapshot& snapshot : seen) {
    auto& knobs = *snapshot.mutable_knobs()->mutable_nodes();
    knobs[1].mutable_buffer_rows()->set_value(7);
    knobs[2].mutable_buffer_rows()->set_value(8);
  }
  const std::vector<Snapshot> made = plan::Forecast(seen, planned);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[1].knobs().nodes_size(), 1);
  EXPECT_EQ(made[1].knobs().nodes().at(1).buffer_rows().value(), 8);
}

TEST(ForecastTest, FilesMayHoldAnything) {
  const Plan plan = Range(10);
  plan::Planned planned;
  planned.plan = &plan;
  planned.nodes = NodesOf(plan);
  EXPECT_TRUE(plan::Forecast({}, planned).empty());
  std::vector<Snapshot> seen(3);
  EXPECT_EQ(plan::Forecast(seen, planned).size(), 3u);
  seen[1].add_nodes()->add_inputs(77);
  EXPECT_TRUE(plan::Forecast(seen, planned).empty());
  seen.pop_back();
  EXPECT_EQ(plan::Forecast(seen, planned).size(), 1u);
}

}  // namespace
}  // namespace penstock::plan_testing
