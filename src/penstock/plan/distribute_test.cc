#include "penstock/plan/distribute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/plan/fingerprint.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/plan/print.h"
#include "penstock/plan/validate.h"

namespace penstock::plan {
namespace {

using plan_testing::AddConstant;
using plan_testing::AppendOrDie;
using plan_testing::Batch;
using plan_testing::Counter;
using plan_testing::Filter;
using plan_testing::IsMultipleOf;
using plan_testing::Map;
using plan_testing::Range;
using plan_testing::Repeat;
using plan_testing::Shuffle;
using plan_testing::Take;
using plan_testing::TryAppend;
using testing::HasSubstr;

Node Asked(uint32_t reader = 0, uint32_t readers = 1) {
  Node node;
  Distribution& asked = *node.mutable_received()->mutable_distribution();
  asked.set_address("localhost:5050");
  asked.set_job("train");
  asked.set_reader(reader);
  asked.set_readers(readers);
  return node;
}

std::vector<std::string> NamesOf(const Plan& plan) {
  std::vector<std::string> names;
  for (int i = 0; i < plan.nodes_size(); ++i) {
    names.push_back(NodeName(plan, i));
  }
  return names;
}

TEST(DistributeTest, AllThatWorkersCanDoIsInsideOfItsFirstNode) {
  const Plan input = Batch(Map(Range(10), AddConstant(1)), 4);
  const Plan plan = AppendOrDie({input}, Asked());
  EXPECT_THAT(NamesOf(plan), testing::ElementsAre("distribute_3"));
  const Distribution& found = plan.nodes(0).received().distribution();
  EXPECT_EQ(Fingerprint(found.plan()), Fingerprint(input));
  EXPECT_EQ(plan.nodes(0).cardinality().finite(), 3);
  EXPECT_EQ(plan.nodes(0).output().SerializeAsString(),
            input.nodes(2).output().SerializeAsString());
  EXPECT_TRUE(Validate(plan).ok()) << Validate(plan);
}

TEST(DistributeTest, WhatCountsRowsFollows) {
  const Plan plan =
      AppendOrDie({Take(Filter(Range(10), IsMultipleOf(2)), 3)}, Asked());
  ASSERT_THAT(NamesOf(plan), testing::ElementsAre("distribute_3", "take_2"));
  // Which rows come first decides.
  EXPECT_TRUE(plan.nodes(0).received().distribution().is_ordered());
  EXPECT_TRUE(Validate(plan).ok()) << Validate(plan);
}

TEST(DistributeTest, EqualPipelinesAreEqualWhereverTheyWereMade) {
  const auto make = [] {
    return AppendOrDie({Shuffle(Map(Range(100), AddConstant(1)), 10)}, Asked());
  };
  const Plan a = make();
  const Plan b = make();
  EXPECT_NE(a.nodes(0).instance(), b.nodes(0).instance());
  EXPECT_EQ(a.nodes(0).received().distribution().plan().SerializeAsString(),
            b.nodes(0).received().distribution().plan().SerializeAsString());
}

TEST(DistributeTest, WhereItIsReadDoesNotCountInTheFingerprint) {
  const Plan input = Map(Range(10), AddConstant(1));
  Node elsewhere = Asked(1, 2);
  elsewhere.mutable_received()->mutable_distribution()->set_address("b:1");
  EXPECT_EQ(Fingerprint(AppendOrDie({input}, Asked())),
            Fingerprint(AppendOrDie({input}, elsewhere)));
  Node ordered = Asked();
  ordered.mutable_received()->mutable_distribution()->set_is_ordered(true);
  EXPECT_NE(Fingerprint(AppendOrDie({input}, Asked())),
            Fingerprint(AppendOrDie({input}, ordered)));
}

TEST(DistributeTest, ReadersShareRowsWhoseNumberIsNotKnown) {
  const Plan plan = AppendOrDie({Map(Range(10), AddConstant(1))}, Asked(1, 2));
  EXPECT_TRUE(plan.nodes(0).cardinality().has_unknown());
}

Plan PythonMap(const Plan& input) {
  Function function;
  function.set_name("f");
  *function.mutable_output() = plan_testing::TensorOf(INT64);
  function.mutable_python()->set_capture("python-1");
  function.mutable_python()->set_identity("f");
  function.mutable_python()->set_reason("the test says so");
  return Map(input, function);
}

Node Shipped(const std::string& document, const std::string& refusal) {
  Node node = Asked();
  Distribution::PythonFunction& function =
      *node.mutable_received()->mutable_distribution()->add_functions();
  function.set_function("python-1");
  function.set_document(document);
  function.set_refusal(refusal);
  return node;
}

TEST(DistributeTest, PythonGoesToWorkersIfItTravels) {
  const Plan plan = AppendOrDie({PythonMap(Range(10))}, Shipped("bytes-1", ""));
  EXPECT_THAT(NamesOf(plan), testing::ElementsAre("distribute_2"));
  EXPECT_TRUE(Validate(plan).ok()) << Validate(plan);
}

// So many, one inside the other.
Plan Levels(int levels) {
  Plan plan = Range(9);
  for (int i = 0; i < levels; ++i) {
    plan = AppendOrDie({Map(plan, AddConstant(1))}, Asked());
  }
  return plan;
}

TEST(DistributeTest, WhatOtherWorkersGiveIsDistributedAgain) {
  const Plan plan = Levels(2);
  ASSERT_THAT(NamesOf(plan), testing::ElementsAre("distribute_2"));
  EXPECT_EQ(plan.nodes(0).cardinality().finite(), 9);
  const Distribution& outer = plan.nodes(0).received().distribution();
  EXPECT_THAT(NamesOf(outer.plan()),
              testing::ElementsAre("distribute_2", "map_1"));
  EXPECT_TRUE(Validate(plan).ok()) << Validate(plan);
  EXPECT_TRUE(Validate(Levels(kMaxLevels)).ok());
}

TEST(DistributeTest, WhatIsReadOfOthersIsFoundInFunctionsToo) {
  const Plan inner = AppendOrDie({Map(Range(9), AddConstant(1))}, Asked());
  const Plan plan =
      plan_testing::FlatMap(Range(3), plan_testing::ToDataset(inner));
  ASSERT_EQ(DistributionsIn(plan).size(), 1);
  EXPECT_EQ(DistributionsIn(plan)[0]->job(), "train");
  // Inside of a distribution, that is its workers' business.
  const Plan outer = AppendOrDie({plan}, Asked());
  ASSERT_EQ(DistributionsIn(outer).size(), 1);
  EXPECT_EQ(
      DistributionsIn(outer.nodes(0).received().distribution().plan()).size(),
      1);
}

TEST(DistributeTest, CredentialsStayWhereTheyAre) {
  Node asked = Asked();
  asked.mutable_received()->mutable_distribution()->set_key_file("my.key");
  Plan plan = AppendOrDie({Map(Range(9), AddConstant(1))}, asked);
  plan = AppendOrDie({Map(plan, AddConstant(1))}, asked);
  EXPECT_THAT(plan.SerializeAsString(), HasSubstr("my.key"));
  DropCredentials(plan);
  EXPECT_THAT(plan.SerializeAsString(), testing::Not(HasSubstr("my.key")));
}

TEST(DistributeTest, DocumentsOfInnerFunctionsGoAlong) {
  const Plan inner = AppendOrDie({PythonMap(Range(9))}, Shipped("bytes-1", ""));
  EXPECT_THAT(CapturesOf(inner), testing::ElementsAre("bytes-1"));
}

struct RefusalCase {
  std::string name;
  Plan input;
  Node node;
  std::string want;
};

class DistributeRefusalTest : public testing::TestWithParam<RefusalCase> {};

TEST_P(DistributeRefusalTest, SaysWhy) {
  const auto plan = TryAppend({GetParam().input}, GetParam().node);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr(GetParam().want));
}

Node With(void (*change)(Distribution&)) {
  Node node = Asked();
  change(*node.mutable_received()->mutable_distribution());
  return node;
}

INSTANTIATE_TEST_SUITE_P(
    Reasons, DistributeRefusalTest,
    testing::ValuesIn<RefusalCase>({
        {"Endless", Counter(), Asked(), "has an end; got counter_0"},
        {"TwiceWithoutEnd",
         AppendOrDie({Repeat(Map(Range(9), AddConstant(1)))}, Asked()), Asked(),
         "Put repeat() behind the last distribute()"},
        {"TwiceAndLossy",
         AppendOrDie({Map(Range(9), AddConstant(1))},
                     With([](Distribution& asked) {
                       asked.set_visitation(Distribution::AT_MOST_ONCE);
                     })),
         Asked(), "with visitation=\"at_most_once\""},
        {"TwiceByEachWorker",
         AppendOrDie({Map(Range(9), AddConstant(1))},
                     With([](Distribution& asked) {
                       asked.set_visitation(Distribution::EACH_WORKER);
                     })),
         Asked(), "with visitation=\"each_worker\""},
        {"TwiceOneOfSeveral",
         AppendOrDie({Map(Range(9), AddConstant(1))}, Asked(0, 2)), Asked(),
         "with num_readers"},
        {"TwiceBatchesRepeated",
         AppendOrDie({Repeat(Batch(Map(Range(9), AddConstant(1)), 2), 3)},
                     Asked()),
         Asked(), "makes batches and repeats them"},
        {"TooOften", Levels(4), Asked(), "at most 4 times"},
        {"OrderOfSeveral", Take(Filter(Range(9), IsMultipleOf(2)), 3),
         Asked(0, 2), "several readers"},
        {"NoPort", Range(3),
         With([](Distribution& d) { d.set_address("host"); }), "got \"host\""},
        {"Scheme", Range(3),
         With([](Distribution& d) { d.set_address("http://head:5050"); }),
         "or \"localhost:5050\"; got \"http://head:5050\""},
        {"ReaderBeyond", Range(3),
         With([](Distribution& d) { d.set_reader(1); }),
         "reader must be in [0, 1)"},
        {"Python", PythonMap(Range(3)), Asked(),
         "runs as Python: the test says so"},
        {"PythonWithoutName", PythonMap(Range(3)), Shipped("", "is a lambda"),
         "is a lambda"},
        {"Compression", Range(3),
         With([](Distribution& d) { d.set_compression("gzip"); }),
         "got \"gzip\""},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::plan
