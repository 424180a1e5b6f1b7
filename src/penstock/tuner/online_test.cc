#include "penstock/tuner/online.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/tuner/simulated_testing.h"

namespace penstock::tuner {
namespace {

using testing::HasSubstr;
using Kind = Decision::Kind;

SimulatedNode Read(double read_seconds = 0, int64_t read_depth = 0) {
  SimulatedNode node;
  node.name = "read";
  node.op = plan::Node::kReadFiles;
  node.cpu_seconds = 2e-6;
  node.is_sequential = true;
  node.read_seconds = read_seconds;
  node.read_depth = read_depth;
  return node;
}

SimulatedNode Work(const std::string& name, double cpu_seconds,
                   int64_t parallelism = 1) {
  SimulatedNode node;
  node.name = name;
  node.cpu_seconds = cpu_seconds;
  node.parallelism = parallelism;
  return node;
}

SimulatedNode Batches() {
  SimulatedNode node;
  node.name = "batch";
  node.op = plan::Node::kBatch;
  node.visits = 1;
  node.row_bytes = 64'000;
  node.cpu_seconds = 1e-5;
  node.is_sequential = true;
  return node;
}

// What happened in a run.
struct Told {
  std::vector<Decision> log;
  int changes = 0;
  double max_models = 0;  // of one call

  int Count(Kind kind) const {
    int count = 0;
    for (const Decision& each : log) count += each.kind == kind;
    return count;
  }
  std::string Text() const {
    return absl::StrJoin(log, "\n", [](std::string* out, const Decision& each) {
      out->append(ToString(each));
    });
  }
};

void Tune(Simulator& simulator, Online& online, double seconds, Told& told,
          double step_seconds = 0.5) {
  const double end = simulator.seconds() + seconds;
  while (simulator.seconds() < end) {
    const int64_t models = online.num_models();
    const Online::Step step = online.Advance(simulator.Run(step_seconds));
    told.max_models = std::max(
        told.max_models, static_cast<double>(online.num_models() - models));
    if (step.knobs.has_value()) {
      ++told.changes;
      simulator.Apply(*step.knobs);
    }
    told.log.insert(told.log.end(), step.log.begin(), step.log.end());
  }
}

struct Shape {
  std::string name;
  SimulatedRun run;
};

class ShapeTest : public testing::TestWithParam<Shape> {};

TEST_P(ShapeTest, ComesWithinFivePercentOfTheBest) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SimulatedRun run = GetParam().run;
    run.seed = seed;
    Simulator simulator(run);
    OnlineOptions options;
    options.budget.may_cache = false;
    Online online(options);
    Told told;
    Tune(simulator, online, 180, told);
    EXPECT_GE(simulator.RateNow(), 0.95 * simulator.BestRate()) << told.Text();
    EXPECT_LE(told.max_models, 1);
    EXPECT_LE(told.changes, 12) << told.Text();
    // And stays there.
    const int changes = told.changes;
    Tune(simulator, online, 600, told);
    EXPECT_LE(told.changes - changes, 2) << told.Text();
    EXPECT_GE(simulator.RateNow(), 0.95 * simulator.BestRate()) << told.Text();
  }
}

SimulatedRun Chain(std::vector<SimulatedNode> nodes, double cores = 8) {
  SimulatedRun run;
  run.nodes = std::move(nodes);
  run.cores = cores;
  return run;
}

SimulatedRun With(SimulatedRun run,
                  const std::function<void(SimulatedRun&)>& change) {
  change(run);
  return run;
}

SimulatedNode Slow(SimulatedNode node, int64_t reorder_rows) {
  node.slow_share = 0.01;
  node.slow_factor = 50;
  node.reorder_rows = reorder_rows;
  return node;
}

SimulatedNode Sleeping(SimulatedNode node) {
  node.wait_seconds = 1e-3;
  node.cpu_seconds = 1e-5;
  return node;
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ShapeTest,
    testing::ValuesIn<Shape>({
        {"OneMap", Chain({Read(), Work("decode", 1e-3), Batches()})},
        {"TwoMaps",
         Chain({Read(), Work("decode", 1e-3), Work("crop", 4e-4), Batches()})},
        {"Skewed",
         Chain({Read(), Work("decode", 2e-3), Work("flip", 2e-5), Batches()})},
        {"ThreeMaps", Chain({Read(), Work("a", 3e-4), Work("b", 3e-4),
                             Work("c", 3e-4), Batches()},
                            16)},
        {"TwoCores", Chain({Read(), Work("decode", 1e-3), Batches()}, 2)},
        {"OneCore", Chain({Read(), Work("decode", 1e-3), Batches()}, 1)},
        {"TooManyTasks", Chain({Read(), Work("decode", 1e-3, 64),
                                Work("crop", 1e-3, 64), Batches()},
                               4)},
        {"ReadLatency",
         Chain({Read(0.01, 1), Work("decode", 1e-4), Batches()})},
        {"ReadsAndTasks",
         Chain({Read(0.004, 2), Work("decode", 2e-3), Batches()})},
        {"Sequential", Chain({Read(), Work("decode", 1e-4),
                              [] {
                                SimulatedNode node = Work("scan", 1e-3);
                                node.is_sequential = true;
                                return node;
                              }(),
                              Batches()})},
        {"SlowRows",
         Chain({Read(), Slow(Work("decode", 1e-3, 8), 8), Batches()})},
        {"Sleeps", Chain({Read(), Sleeping(Work("fetch", 0, 2)), Batches()})},
        {"NoBuffer", With(Chain({Read(), Work("decode", 1e-3), Batches()}),
                          [](SimulatedRun& run) {
                            run.output_rows = 0;
                            run.consumer_seconds = 5e-3;
                          })},
        {"BurstyConsumer",
         With(Chain({Read(), Work("decode", 1e-3), Batches()}),
              [](SimulatedRun& run) {
                run.output_rows = 1;
                run.consumer_seconds = 8e-3;
                run.consumer_cv = 1.5;
              })},
        {"SlowConsumer",
         With(Chain({Read(), Work("decode", 1e-3), Batches()}),
              [](SimulatedRun& run) { run.consumer_seconds = 0.05; })},
        {"Noisy", With(Chain({Read(), Work("decode", 1e-3), Work("crop", 4e-4),
                              Batches()}),
                       [](SimulatedRun& run) { run.noise = 0.12; })},
        {"ManyCores",
         Chain({Read(), Work("decode", 4e-3), Work("crop", 1e-3), Batches()},
               64)},
    }),
    [](const auto& info) { return info.param.name; });

TEST(Online, DoesNotOscillateUnderNoise) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SimulatedRun run =
        Chain({Read(), Work("decode", 1e-3), Work("crop", 4e-4), Batches()});
    run.noise = 0.15;
    run.seed = seed;
    Simulator simulator(run);
    Online online;
    Told told;
    Tune(simulator, online, 300, told);
    const int changes = told.changes;
    Tune(simulator, online, 3 * 3600, told, 1);
    EXPECT_LE(told.changes - changes, 4) << told.Text();
    EXPECT_GE(simulator.RateNow(), 0.9 * simulator.BestRate()) << told.Text();
  }
}

TEST(Online, LeavesANoisyNeighbourAlone) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SimulatedRun run = Chain({Read(), Work("decode", 1e-3), Batches()}, 4);
    run.seed = seed;
    run.others = [](double seconds) {
      return seconds >= 60 && seconds < 180 ? 2.0 : 0.0;
    };
    Simulator simulator(run);
    Online online;
    Told told;
    Tune(simulator, online, 59, told);
    const double tuned = simulator.RateNow();
    EXPECT_GE(tuned, 0.95 * simulator.BestRate()) << told.Text();
    const int changes = told.changes;
    double given = 0, possible = 0;
    while (simulator.seconds() < 240) {
      const double before = simulator.roots();
      Tune(simulator, online, 1, told);
      given += simulator.roots() - before;
      possible += simulator.BestRate();
    }
    EXPECT_LE(told.changes - changes, 1) << told.Text();
    EXPECT_GE(given, 0.95 * possible) << told.Text();
    EXPECT_NEAR(simulator.RateNow(), tuned, 0.02 * tuned);
    EXPECT_THAT(told.Text(), HasSubstr("others use the cores"));
    EXPECT_THAT(told.Text(), HasSubstr("the cores are back"));
  }
}

// Who comes while a trial is judged costs no more than that trial.
TEST(Online, IsNotFooledByANeighbourInATrial) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SimulatedRun run = Chain({Read(), Work("decode", 1e-3), Batches()}, 4);
    run.seed = seed;
    run.others = [](double seconds) {
      return seconds >= 3.4 && seconds < 40 ? 3.5 : 0.0;
    };
    Simulator simulator(run);
    Online online;
    Told told;
    Tune(simulator, online, 240, told);
    EXPECT_GE(simulator.RateNow(), 0.95 * simulator.BestRate()) << told.Text();
    EXPECT_LE(told.changes, 6) << told.Text();
  }
}

TEST(Online, FollowsADrift) {
  SimulatedRun run =
      Chain({Read(), Work("decode", 2e-4), Work("crop", 2e-3), Batches()}, 16);
  // Decoding becomes the costly one.
  run.factor = [](double seconds, const std::string& node) {
    if (seconds < 300) return 1.0;
    return node == "decode" ? 20.0 : node == "crop" ? 0.1 : 1.0;
  };
  Simulator simulator(run);
  Online online;
  Told told;
  Tune(simulator, online, 299, told);
  EXPECT_GE(simulator.RateNow(), 0.95 * simulator.BestRate()) << told.Text();
  Tune(simulator, online, 300, told);
  EXPECT_GE(simulator.RateNow(), 0.95 * simulator.BestRate()) << told.Text();
  EXPECT_THAT(told.Text(), HasSubstr("demands have moved"));
}

TEST(Online, GivesBackWhatTheConsumerCannotTake) {
  SimulatedRun run = Chain(
      {Read(), Work("decode", 1e-3, 16), Work("crop", 1e-3, 16), Batches()},
      16);
  run.consumer_seconds = 0.2;  // 64 rows need 0.13 core-seconds
  Simulator simulator(run);
  Online online;
  Told told;
  Tune(simulator, online, 120, told);
  EXPECT_LE(simulator.knobs().nodes().at(1).parallelism().value(), 3)
      << told.Text();
  EXPECT_LE(simulator.knobs().nodes().at(2).parallelism().value(), 3);
  EXPECT_GE(simulator.RateNow(), 0.97 * simulator.BestRate());
}

TEST(Online, LeavesWhatTheUserPinned) {
  SimulatedRun run = Chain({Read(), Work("decode", 1e-3), Batches()});
  run.nodes[1].is_pinned = true;
  Simulator simulator(run);
  Online online;
  Told told;
  Tune(simulator, online, 120, told);
  EXPECT_EQ(simulator.knobs().nodes().at(1).parallelism().value(), 1);
  EXPECT_EQ(simulator.knobs().nodes().at(1).parallelism().chosen_by(),
            plan::USER);
}

SimulatedRun Cacheable() {
  SimulatedRun run = Chain({Read(), Work("decode", 1e-3), Batches()}, 4);
  for (SimulatedNode& node : run.nodes) {
    node.cardinality = node.name == "batch" ? 1000 : 64'000;
  }
  run.epoch_roots = 1000;
  return run;
}

TEST(Online, PlacesACacheInTheFirstSeconds) {
  Simulator simulator(Cacheable());
  Online online;
  Told told;
  Tune(simulator, online, 4, told);
  bool has_cache = false;
  for (const auto& [id, knobs] : simulator.knobs().nodes()) {
    has_cache |= knobs.has_cache();
  }
  EXPECT_TRUE(has_cache) << told.Text();
  const double without = simulator.BestRate();
  Tune(simulator, online, 120, told);
  EXPECT_GT(simulator.RateNow(), 5 * without) << told.Text();
  EXPECT_THAT(told.Text(), HasSubstr("kept cache: none -> after "))
      << told.Text();
}

TEST(Online, PlacesNoCacheWhereNoneMayStand) {
  for (int way = 0; way < 3; ++way) {
    SimulatedRun run = Cacheable();
    Budget budget;
    if (way == 0) run.nodes[0].is_random = true;
    if (way == 1) run.memory_bytes = 51e6;  // what it has is taken
    if (way == 2) budget.may_cache = false;
    Simulator simulator(run);
    OnlineOptions options;
    options.budget = budget;
    Online online(options);
    Told told;
    Tune(simulator, online, 60, told);
    for (const auto& [id, knobs] : simulator.knobs().nodes()) {
      EXPECT_FALSE(knobs.has_cache()) << way << "\n" << told.Text();
    }
  }
}

// One file, read by one task, size not known: nothing to raise, nothing to
// keep.
TEST(Online, OneFileIsAsFastAsItIs) {
  SimulatedNode read = Read();
  read.cpu_seconds = 1e-3;
  Simulator simulator(Chain({read, Work("parse", 1e-5), Batches()}));
  Online online;
  Told told;
  Tune(simulator, online, 120, told);
  EXPECT_GE(simulator.RateNow(), 0.97 * simulator.BestRate()) << told.Text();
  EXPECT_LE(told.changes, 4) << told.Text();
}

TEST(Online, BeginsAnewWhereSnapshotsGoBack) {
  Simulator simulator(Chain({Read(), Work("decode", 1e-3), Batches()}));
  Online online;
  std::vector<plan::Snapshot> early;
  for (int i = 0; i < 4; ++i) {
    early.push_back(simulator.Run(0.5));
    EXPECT_FALSE(online.Advance(early.back()).knobs.has_value());
  }
  for (size_t i = early.size(); i-- > 0;) {
    EXPECT_FALSE(online.Advance(early[i]).knobs.has_value());
  }
  // The same one again and again says nothing.
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(online.Advance(early[0]).knobs.has_value());
  }
  // What is no snapshot is passed over.
  EXPECT_FALSE(online.Advance(plan::Snapshot()).knobs.has_value());
  Told told;
  Tune(simulator, online, 60, told);
  EXPECT_GE(simulator.RateNow(), 0.95 * simulator.BestRate()) << told.Text();
}

TEST(Online, AnotherRunBeginsWhereTheLastOneEnded) {
  SimulatedRun run = Chain({Read(), Work("decode", 1e-3), Batches()});
  Simulator first(run);
  Online online;
  Told told;
  Tune(first, online, 60, told);
  run.id = 2;
  Simulator second(run);
  Told again;
  Tune(second, online, 5, again);
  EXPECT_GE(second.RateNow(), 0.95 * second.BestRate()) << again.Text();
  EXPECT_EQ(again.changes, 1) << again.Text();
  // What the user has pinned since stays.
  run.id = 3;
  run.nodes[1].is_pinned = true;
  Simulator third(run);
  Tune(third, online, 60, again);
  EXPECT_EQ(third.knobs().nodes().at(1).parallelism().value(), 1)
      << again.Text();
}

TEST(Online, WaitsForAPipelineThatGivesNothing) {
  SimulatedRun run = Chain({Read(), Work("decode", 1e-3), Batches()});
  run.is_stuck = true;
  Simulator simulator(run);
  Online online;
  Told told;
  Tune(simulator, online, 600, told);
  EXPECT_EQ(told.changes, 0);
  EXPECT_EQ(told.log.size(), 1);
  EXPECT_THAT(told.Text(), HasSubstr("no element has come out"));
}

TEST(Online, TakesNoForAnAnswer) {
  Simulator simulator(Chain({Read(), Work("decode", 1e-3), Batches()}));
  Online online;
  int asked = 0;
  std::string text;
  for (int i = 0; i < 2000; ++i) {  // knobs are never applied
    const Online::Step step = online.Advance(simulator.Run(0.5));
    asked += step.knobs.has_value();
    for (const Decision& each : step.log) text += ToString(each) + "\n";
  }
  EXPECT_LE(asked, 6) << text;
  EXPECT_THAT(text, HasSubstr("did not change"));
}

TEST(Online, ProbesAreLimited) {
  SimulatedRun run = Chain({Read(), Work("decode", 1e-3), Batches()});
  run.factor = [](double seconds, const std::string& node) {
    return node == "decode" && static_cast<int>(seconds / 120) % 2 ? 20 : 1;
  };
  run.consumer_seconds = 0.01;
  Simulator simulator(run);
  OnlineOptions options;
  options.max_probes_per_hour = 5;
  Online online(options);
  Told told;
  Tune(simulator, online, 3600, told);
  EXPECT_LE(told.Count(Kind::kTried), 5) << told.Text();
}

TEST(Online, SaysWhatAPersonCanRead) {
  Simulator simulator(Chain({Read(), Work("decode", 1e-3), Batches()}));
  Online online;
  Told told;
  Tune(simulator, online, 60, told);
  EXPECT_THAT(told.Text(),
              HasSubstr("try parallelism: decode 1 -> decode 8 ("));
  EXPECT_THAT(told.Text(), HasSubstr("kept parallelism: decode 1 -> decode 8"));
  EXPECT_THAT(told.Text(), HasSubstr("; predicted "));
  EXPECT_THAT(told.Text(), HasSubstr("/s, seen "));
}

TEST(Online, CostsLittle) {
  std::vector<SimulatedNode> nodes = {Read()};
  for (int i = 0; i < 48; ++i) {
    nodes.push_back(Work(absl::StrCat("map_", i), 2e-5));
  }
  nodes.push_back(Batches());
  Simulator simulator(Chain(nodes, 8));
  Online online;
  double total = 0, with_model = 0;
  int calls = 0, num_with_model = 0;
  while (simulator.seconds() < 300) {
    const plan::Snapshot snapshot = simulator.Run(0.1);
    const int64_t models = online.num_models();
    const auto begin = std::chrono::steady_clock::now();
    const Online::Step step = online.Advance(snapshot);
    const double millis = std::chrono::duration<double, std::milli>(
                              std::chrono::steady_clock::now() - begin)
                              .count();
    EXPECT_LE(online.num_models() - models, 1);
    total += millis;
    if (online.num_models() > models) {
      with_model += millis;
      ++num_with_model;
    }
    ++calls;
    if (step.knobs.has_value()) simulator.Apply(*step.knobs);
  }
  // At rest, one in five seconds.
  EXPECT_LE(online.num_models(), 150);
  std::printf("Advance, 50 nodes: %.3f ms a call, %.2f ms with a model\n",
              total / calls, with_model / std::max(1, num_with_model));
}

}  // namespace
}  // namespace penstock::tuner
