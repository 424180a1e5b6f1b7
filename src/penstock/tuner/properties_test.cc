// What holds for every snapshot, tried with many that chance makes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "penstock/plan/snapshot.h"
#include "penstock/tuner/choose.h"
#include "penstock/tuner/demand.h"
#include "penstock/tuner/diagnose.h"
#include "penstock/tuner/measured_testing.h"
#include "penstock/tuner/what_if.h"

namespace penstock::tuner {
namespace {

using Random = std::mt19937_64;

double Between(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

// From 1e-`digits` to 1, each order of magnitude as likely.
double Scale(Random& random, double digits) {
  return std::pow(10, -Between(random, 0, digits));
}

bool Chance(Random& random, double share) {
  return Between(random, 0, 1) < share;
}

// A run that might have been.
TestRun Likely(Random& random) {
  TestRun run;
  const int nodes = 2 + static_cast<int>(random() % 8);
  run.nodes.push_back(Source(1e6 * Scale(random, 4)));
  run.nodes[0].read_bytes = run.nodes[0].row_bytes;
  if (Chance(random, 0.5)) {
    run.nodes[0].read_depth = 1 + static_cast<int64_t>(random() % 32);
    run.nodes[0].read_seconds = 0.1 * Scale(random, 5);
  }
  if (Chance(random, 0.5)) run.disk_bytes_per_second = 1e9 * Scale(random, 3);
  for (int i = 1; i < nodes; ++i) {
    TestNode node = Map(absl::StrCat("map_", i), 0.1 * Scale(random, 6),
                        1e6 * Scale(random, 4));
    node.parallelism = 1 + static_cast<int64_t>(random() % 16);
    node.is_sequential = Chance(random, 0.2);
    node.keeps_order = Chance(random, 0.7);
    node.is_random = Chance(random, 0.2);
    node.cores_per_task = Chance(random, 0.2) ? Between(random, 0.1, 4) : 1;
    node.cardinality = 1 + static_cast<int64_t>(random() % 1'000'000);
    if (Chance(random, 0.3)) {
      node.slow_share = 0.02;
      node.slow_factor = 30;
      node.reorder_rows = 1 + static_cast<int64_t>(random() % 200);
    }
    if (Chance(random, 0.2)) {
      node.buffer_rows = 1 + static_cast<int64_t>(random() % 500);
    }
    if (Chance(random, 0.1)) node.chosen_by = plan::USER;
    run.nodes.push_back(node);
  }
  run.nodes.push_back(Batch(64, 64e5 * Scale(random, 3)));
  run.cores = 1 + static_cast<double>(random() % 64);
  run.memory_bytes = 64e9 * Scale(random, 3);
  run.resident_bytes = run.memory_bytes * Between(random, 0, 0.5);
  if (Chance(random, 0.7)) run.consumer_seconds = Scale(random, 4);
  run.consumer_cv = Between(random, 0, 3);
  run.consumer_wait_share = Between(random, 0, 0.99);
  run.noise = Between(random, 0, 0.1);
  run.rate = 100 * Scale(random, 3);
  return run;
}

bool IsGood(const Interval& interval) {
  return std::isfinite(interval.low) && std::isfinite(interval.middle) &&
         std::isfinite(interval.high) && interval.low >= 0 &&
         interval.low <= interval.middle && interval.middle <= interval.high;
}

constexpr int kTrials = 400;

TEST(Properties, TheBoundNeverRisesWithADemand) {
  Random random(1);
  for (int trial = 0; trial < kTrials; ++trial) {
    const Model model = ModelOf(Likely(random));
    for (KnobsAre knobs : {KnobsAre::kInForce, KnobsAre::kFree}) {
      const Interval before = FindBound(model, knobs).rate;
      ASSERT_TRUE(IsGood(before));
      for (size_t i = 0; i < model.nodes.size(); ++i) {
        Model more = model;
        NodeModel& node = more.nodes[i];
        const double factor = 1 + Scale(random, 2);
        switch (random() % 4) {
          case 0:
            node.cpu.value *= factor;
            node.busy.value *= factor;
            break;
          case 1:
            node.disk_bytes.value *= factor;
            break;
          case 2:
            node.read_time.value *= factor;
            break;
          default:
            node.cpu.value *= factor;
        }
        const Interval after = FindBound(more, knobs).rate;
        EXPECT_LE(after.middle, before.middle * (1 + 1e-6)) << trial;
        EXPECT_LE(after.low, before.low * (1 + 1e-6)) << trial;
      }
    }
  }
}

TEST(Properties, MoreOfAnythingNeverLowersTheBound) {
  Random random(2);
  for (int trial = 0; trial < kTrials; ++trial) {
    const Model model = ModelOf(Likely(random));
    const double before = FindBound(model, KnobsAre::kInForce).rate.middle;
    const std::vector<std::vector<Change>> changes = {
        {SetCores{model.resources.cores * (1 + Scale(random, 2))}},
        {ScaleDisk{1.5}},
        {ScaleConsumer{2}},
        {SetOutputRows{model.resources.output_rows.value_or(0) + 2}},
    };
    for (const std::vector<Change>& each : changes) {
      const absl::StatusOr<Bound> after =
          WhatIf(model, each, KnobsAre::kInForce);
      ASSERT_TRUE(after.ok()) << after.status();
      EXPECT_GE(after->rate.middle, before * (1 - 1e-6)) << trial;
    }
    const absl::StatusOr<Bound> free =
        WhatIf(model, {SetCores{2 * model.resources.cores}}, KnobsAre::kFree);
    EXPECT_GE(free->rate.middle,
              FindBound(model, KnobsAre::kFree).rate.middle * (1 - 1e-6));
  }
}

TEST(Properties, FreeKnobsAreNoWorse) {
  Random random(3);
  for (int trial = 0; trial < kTrials; ++trial) {
    const Model model = ModelOf(Likely(random));
    EXPECT_GE(FindBound(model, KnobsAre::kFree).rate.middle,
              FindBound(model, KnobsAre::kInForce).rate.middle * (1 - 1e-6));
  }
}

TEST(Properties, AChoiceStaysWithinCoresAndMemory) {
  Random random(4);
  for (int trial = 0; trial < kTrials; ++trial) {
    const TestRun run = Likely(random);
    const Model model = ModelOf(run);
    Budget budget;
    if (Chance(random, 0.5)) budget.cores = run.cores * Between(random, 0.1, 1);
    if (Chance(random, 0.5)) {
      budget.memory_bytes = run.memory_bytes * Between(random, 0.05, 1);
    }
    const absl::StatusOr<Choice> choice = Choose(model, budget);
    ASSERT_TRUE(choice.ok()) << choice.status();
    ASSERT_TRUE(IsGood(choice->bound.rate));
    const double cores = budget.cores.value_or(run.cores);
    EXPECT_LE(choice->cores, cores * 1.001) << trial;
    if (!choice->is_over_memory) {
      EXPECT_LE(
          choice->memory_bytes,
          std::min(0.9 * run.memory_bytes, budget.memory_bytes.value_or(1e18)) *
              (1 + 1e-9))
          << trial;
    }
    for (size_t i = 0; i < model.nodes.size(); ++i) {
      const NodeModel& node = model.nodes[i];
      const auto found = choice->knobs.nodes().find((*model.measured)[i].id);
      if (found == choice->knobs.nodes().end() || node.is_pinned) continue;
      if (!found->second.has_parallelism()) continue;
      const auto tasks =
          static_cast<double>(found->second.parallelism().value());
      EXPECT_GE(tasks, 1);
      EXPECT_TRUE(tasks == 1 || tasks * node.cores_per_task <= cores * 1.001)
          << trial << ": " << tasks << " x " << node.cores_per_task;
    }
  }
}

TEST(Properties, AChoiceIsAsGoodAsFreeKnobs) {
  Random random(5);
  for (int trial = 0; trial < kTrials; ++trial) {
    TestRun run = Likely(random);
    run.memory_bytes = 1e12;
    for (TestNode& node : run.nodes) {
      node.cores_per_task = 1;
      // One task of each node must be enough for its hand-over not to matter.
      node.cpu_seconds = std::max(node.cpu_seconds, 100e-6);
    }
    const Model model = ModelOf(run);
    Budget budget;
    budget.may_cache = false;
    const absl::StatusOr<Choice> choice = Choose(model, budget);
    ASSERT_TRUE(choice.ok());
    const double free = FindBound(model, KnobsAre::kFree).rate.middle;
    EXPECT_GE(choice->bound.rate.middle, 0.94 * free)
        << trial << " " << WallName(choice->bound.wall().wall);
  }
}

TEST(Properties, ADiagnosisIsAlwaysASentence) {
  Random random(6);
  for (int trial = 0; trial < kTrials; ++trial) {
    const absl::StatusOr<Diagnosis> diagnosis =
        Diagnose(ModelOf(Likely(random)));
    ASSERT_TRUE(diagnosis.ok()) << diagnosis.status();
    EXPECT_FALSE(diagnosis->sentence.empty());
    EXPECT_EQ(diagnosis->sentence.find("nan"), std::string::npos)
        << diagnosis->sentence;
    for (const Fix& fix : diagnosis->fixes) {
      EXPECT_TRUE(IsGood(fix.expected)) << fix.title;
    }
    for (const Evidence& line : diagnosis->evidence) {
      EXPECT_TRUE(std::isfinite(line.rate) && std::isfinite(line.used));
    }
  }
}

TEST(Properties, TheLongestPlansAreLookedAtWhole) {
  TestRun run;
  run.nodes = {Source()};
  for (int i = 2; i < 10'000; ++i) {
    run.nodes.push_back(Map(absl::StrCat("map_", i), 1e-6));
    run.nodes.back().cardinality = 1'000'000;
  }
  run.nodes.push_back(Batch());
  run.windows = 1;
  run.has_stages = false;
  const absl::StatusOr<Diagnosis> diagnosis = Diagnose(ModelOf(run));
  ASSERT_TRUE(diagnosis.ok()) << diagnosis.status();
  EXPECT_EQ(diagnosis->wall.wall, Wall::kStage);
}

// A snapshot of numbers that mean nothing.
plan::Snapshot Senseless(Random& random) {
  const auto number = [&]() -> uint64_t {
    switch (random() % 4) {
      case 0:
        return 0;
      case 1:
        return random() % 100;
      case 2:
        return random() >> (random() % 64);
      default:
        return random();
    }
  };
  const auto real = [&] { return static_cast<double>(number()); };
  plan::Snapshot snapshot;
  snapshot.set_version(random() % 50 == 0 ? 2 : 1);
  snapshot.set_time_ns(number());
  const int nodes = static_cast<int>(random() % 12);
  for (int i = 0; i < nodes; ++i) {
    plan::Snapshot::Node& node = *snapshot.add_nodes();
    node.set_node(random() % 50 == 0 ? 0 : i);
    node.set_op(static_cast<uint32_t>(random() % 70));
    node.set_name(absl::StrCat("node_", i));
    for (uint64_t k = random() % 3; k > 0 && i > 0; --k) {
      node.add_inputs(static_cast<uint32_t>(random() % (i + (k == 9))));
    }
    if (random() % 8 == 0) {
      node.set_inside(static_cast<uint32_t>(random() % nodes));
    }
    node.set_is_random(random() % 4 == 0);
    node.set_is_python(random() % 4 == 0);
    node.set_keeps_order(random() % 2 == 0);
    node.set_is_sequential(random() % 4 == 0);
    node.set_parallelism(number());
    if (random() % 2 == 0) {
      node.set_stage(static_cast<uint32_t>(random() % 3));
    }
    node.set_rows(number());
    node.set_chunks(number());
    node.set_bytes(number());
    node.set_largest_row_bytes(number());
    node.set_self_ns(number());
    if (random() % 2 == 0) node.set_cpu_ns(number());
    node.set_wait_input_ns(number());
    if (random() % 2 == 0) node.set_active_task_ns(real());
    node.set_python_ns(number());
    node.set_io_bytes(number());
    node.set_io_ops(number());
    node.set_io_ns(number());
    if (random() % 2 == 0) node.set_read_depth(number());
    for (uint64_t k = random() % 66; k > 0; --k) {
      node.mutable_service_ns()->add_counts(number());
      node.mutable_row_bytes()->add_counts(number());
    }
    if (random() % 3 == 0) {
      node.mutable_queue()->set_capacity_rows(number());
      node.mutable_queue()->set_row_ns(real());
      node.mutable_queue()->set_found_empty(number());
    }
    if (random() % 4 == 0) {
      node.mutable_cache()->set_is_complete(random() % 2 == 0);
    }
    if (random() % 3 == 0) {
      node.mutable_files()->set_total(number());
      node.mutable_files()->set_opened(number());
      node.mutable_files()->set_opened_bytes(real());
      node.mutable_files()->set_opened_bytes_squared(real());
    }
    if (random() % 3 == 0) {
      node.mutable_cardinality()->set_finite(
          static_cast<int64_t>(number() >> 1));
    }
    plan::NodeKnobs& knobs =
        (*snapshot.mutable_knobs()->mutable_nodes())[static_cast<uint32_t>(i)];
    if (random() % 3 == 0) {
      knobs.mutable_reorder_rows()->set_value(static_cast<int64_t>(number()));
      knobs.mutable_reorder_rows()->set_chosen_by(
          static_cast<plan::Chooser>(random() % 3));
    }
    if (random() % 3 == 0) {
      knobs.mutable_buffer_rows()->set_value(static_cast<int64_t>(number()));
      knobs.mutable_buffer_rows()->set_chosen_by(
          static_cast<plan::Chooser>(random() % 3));
    }
    if (random() % 3 == 0) {
      knobs.mutable_parallelism()->set_chosen_by(
          static_cast<plan::Chooser>(random() % 3));
    }
  }
  if (nodes > 0) snapshot.set_root(static_cast<uint32_t>(random() % nodes));
  plan::Snapshot::Machine& machine = *snapshot.mutable_machine();
  machine.set_cores(random() % 20 == 0 ? 0 : real() + 0.1);
  machine.set_memory_limit_bytes(number());
  if (random() % 2 == 0) machine.set_disk_bytes_per_second(real());
  if (random() % 2 == 0) machine.set_handoff_ns(real());
  plan::Snapshot::Consumer& consumer = *snapshot.mutable_consumer();
  consumer.set_batches(number());
  consumer.set_wait_ns(number());
  consumer.set_gaps(number());
  consumer.set_gap_ns(real());
  consumer.set_gap_ns_squared(real());
  if (random() % 2 == 0) {
    consumer.mutable_queue()->set_capacity_rows(number());
  }
  plan::Snapshot::Process& process = *snapshot.mutable_process();
  process.set_engine_cpu_ns(number());
  process.set_python_cpu_ns(number());
  if (random() % 2 == 0) process.set_unattributed_cpu_ns(number());
  process.set_resident_bytes(number());
  return snapshot;
}

Change SomeChange(Random& random, const Model& model) {
  const auto node = [&] {
    return (*model.measured)[random() % model.nodes.size()].id;
  };
  switch (random() % 6) {
    case 0:
      return CacheAfter{node(), random() % 2 == 0 ? plan::MEMORY : plan::DISK,
                        Between(random, 0.01, 1), 1e9};
    case 1:
      return Fuse{node()};
    case 2:
      return OnWorkers{node(), 8, std::nullopt};
    case 3:
      return SetTasks{node(), 3};
    case 4:
      return MoveNode{node(), std::nullopt};
    default:
      return MoveNode{node(), node()};
  }
}

// Inputs come before users, the root comes last, and numbers are numbers.
void ExpectWhole(const Model& model, uint32_t root, int trial) {
  ASSERT_EQ(model.nodes.size(), model.measured->size());
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const uint32_t id = (*model.measured)[i].id;
    ASSERT_EQ(FindNode(model, id), static_cast<int>(i)) << trial;
    for (int input : model.nodes[i].inputs) {
      ASSERT_GE(input, 0) << trial;
      ASSERT_LT(input, static_cast<int>(i)) << trial;
    }
  }
  std::vector<bool> is_needed(model.nodes.size(), false);
  is_needed.back() = true;
  for (size_t i = model.nodes.size(); i-- > 0;) {
    for (int input : model.nodes[i].inputs) {
      is_needed[input] = is_needed[input] || is_needed[i];
    }
  }
  ASSERT_TRUE(is_needed[*FindNode(model, root)]) << trial;
  for (KnobsAre knobs : {KnobsAre::kInForce, KnobsAre::kFree}) {
    ASSERT_TRUE(IsGood(FindBound(model, knobs).rate)) << trial;
  }
}

TEST(Properties, WhateverIsChangedTheModelIsWhole) {
  Random random(8);
  int changed = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    absl::StatusOr<Model> model =
        trial % 2 == 0 ? absl::StatusOr<Model>(ModelOf(Likely(random)))
                       : Measure({Senseless(random)});
    if (!model.ok() || model->nodes.empty()) continue;
    const uint32_t root = model->measured->back().id;
    for (int step = 0; step < 3; ++step) {
      const absl::StatusOr<Model> then =
          Apply(*model, {SomeChange(random, *model)});
      if (!then.ok()) continue;
      ++changed;
      ExpectWhole(*then, root, trial);
      if (testing::Test::HasFatalFailure()) return;
      *model = *then;
    }
  }
  EXPECT_GT(changed, 1000);
}

TEST(Properties, NumbersThatMeanNothingDoNoHarm) {
  Random random(7);
  int measured = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    const plan::Snapshot snapshot = Senseless(random);
    const absl::StatusOr<Model> model = Measure({snapshot});
    if (!model.ok()) continue;
    ++measured;
    for (const NodeModel& node : model->nodes) {
      ASSERT_TRUE(
          std::isfinite(node.busy.value) && std::isfinite(node.busy.error) &&
          std::isfinite(node.cpu.value) && std::isfinite(node.cores_per_task) &&
          std::isfinite(node.visits) && std::isfinite(node.tail))
          << trial;
    }
    for (KnobsAre knobs : {KnobsAre::kInForce, KnobsAre::kFree}) {
      ASSERT_TRUE(IsGood(FindBound(*model, knobs).rate)) << trial;
    }
    const absl::StatusOr<Diagnosis> diagnosis = Diagnose(*model);
    ASSERT_TRUE(diagnosis.ok()) << diagnosis.status();
    ASSERT_TRUE(IsGood(diagnosis->choice.bound.rate)) << trial;
    ASSERT_TRUE(std::isfinite(diagnosis->choice.memory_bytes)) << trial;
    ASSERT_EQ(diagnosis->sentence.find("nan"), std::string::npos);
  }
  EXPECT_GT(measured, 1000);
}

}  // namespace
}  // namespace penstock::tuner
