#include "penstock/engine/knobs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/engine/pipeline.h"
#include "penstock/engine/reader_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine {
namespace {

using engine_testing::BuildOrDie;
using engine_testing::TestEngine;
using plan_testing::Plan;

class KnobsTest : public ::testing::Test {
 protected:
  // range -> map, parallelism given by the user -> prefetch, open
  std::unique_ptr<Iterator> Start() {
    Plan plan = plan_testing::Map(plan_testing::Range(10),
                                  plan_testing::AddConstant(1));
    plan.mutable_nodes(1)->mutable_map()->set_parallelism(3);
    plan = plan_testing::Prefetch(std::move(plan));
    auto iterator = Iterator::Start(BuildOrDie(plan), engine_.environment(),
                                    engine_.instances(), 0);
    EXPECT_TRUE(iterator.ok()) << iterator.status();
    return *std::move(iterator);
  }
  static plan::Knob Chosen(int64_t value, plan::Chooser by) {
    plan::Knob knob;
    knob.set_value(value);
    knob.set_chosen_by(by);
    return knob;
  }

  TestEngine engine_;
};

TEST_F(KnobsTest, InForceAreTheUsersUntilOthersAreSet) {
  const auto iterator = Start();
  plan::Knobs knobs = KnobsInForce(*iterator->run());
  ASSERT_EQ(knobs.nodes().size(), 1);
  EXPECT_EQ(knobs.nodes().at(1).parallelism().value(), 3);
  EXPECT_EQ(knobs.nodes().at(1).parallelism().chosen_by(), plan::USER);

  *(*knobs.mutable_nodes())[1].mutable_parallelism() = Chosen(5, plan::TUNER);
  *(*knobs.mutable_nodes())[2].mutable_buffer_rows() = Chosen(7, plan::TUNER);
  SetKnobs(knobs, *iterator->run());
  plan::Knobs found = KnobsInForce(*iterator->run());
  EXPECT_EQ(found.nodes().at(1).parallelism().value(), 5);
  EXPECT_EQ(found.nodes().at(1).parallelism().chosen_by(), plan::TUNER);
  EXPECT_EQ(found.nodes().at(2).buffer_rows().value(), 7);

  SetKnobs({}, *iterator->run());
  found = KnobsInForce(*iterator->run());
  EXPECT_EQ(found.nodes().at(1).parallelism().value(), 3) << "the user's again";
  EXPECT_FALSE(found.nodes().contains(2));
}

TEST_F(KnobsTest, WhatTheUserChoseIsNotSetAgain) {
  const auto iterator = Start();
  plan::Knobs knobs;
  *(*knobs.mutable_nodes())[1].mutable_parallelism() = Chosen(9, plan::USER);
  SetKnobs(knobs, *iterator->run());
  EXPECT_EQ(iterator->run()->knobs[1].parallelism, 0);
}

TEST_F(KnobsTest, NodesThatAreNotThereAreIgnored) {
  const auto iterator = Start();
  plan::Knobs knobs;
  *(*knobs.mutable_nodes())[99].mutable_parallelism() = Chosen(9, plan::TUNER);
  SetKnobs(knobs, *iterator->run());
  EXPECT_EQ(KnobsInForce(*iterator->run()).nodes().size(), 1);
}

}  // namespace
}  // namespace penstock::engine
