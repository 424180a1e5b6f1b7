#include "penstock/plan/rewrite/rewriting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "google/protobuf/util/message_differencer.h"
#include "penstock/plan/fingerprint.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/plan/print.h"
#include "penstock/plan/rewrite/draft.h"
#include "penstock/plan/rewrite/rewrite_testing.h"
#include "penstock/plan/validate.h"

namespace penstock::plan_testing {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Function DoubleSecond() {
  FunctionBuilder f("double_second");
  return f.ReturnTuple({f.Arg(0), f.Call("multiply", {f.Arg(1), f.Int(2)})});
}

Function FirstIsEven() {
  FunctionBuilder f("first_is_even");
  return f.Return(
      f.Call("equal", {f.Call("mod", {f.Arg(0), f.Int(2)}), f.Int(0)}));
}

Function First() {
  FunctionBuilder f("first");
  return f.Return(f.Arg(0));
}

// A filter that can go before the map, over a range that is taken whole.
Plan Filtered() {
  return Filter(Map(Enumerate(Take(Range(10), 99)), DoubleSecond()),
                FirstIsEven());
}

plan::Rewriting Decide(const Plan& plan,
                       const plan::RewriteOptions& options = {}) {
  const absl::StatusOr<plan::Rewritten> rewritten =
      plan::Rewrite(plan, options);
  EXPECT_TRUE(rewritten.ok()) << rewritten.status();
  EXPECT_FALSE(rewritten->applied.empty());
  return plan::ToRewriting(plan, options, *rewritten);
}

Plan ApplyOrDie(const Plan& plan, const plan::Rewriting& rewriting) {
  absl::StatusOr<Plan> made = plan::Apply(plan, rewriting);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : Plan();
}

TEST(RewritingTest, IsDoneAgain) {
  const Plan plan = Filtered();
  const plan::Rewriting rewriting = Decide(plan);
  EXPECT_THAT(rewriting.passes(), ElementsAre("drop_no_ops", "push_filter"));
  EXPECT_THAT(rewriting.measured(), IsEmpty());
  EXPECT_EQ(rewriting.nodes(), 5u);
  const Plan made = ApplyOrDie(plan, rewriting);
  EXPECT_EQ(Chain(made), "range_0 enumerate_2 filter_4 map_3");
  EXPECT_EQ(plan::Fingerprint(made), rewriting.fingerprint());
  EXPECT_NE(plan::Fingerprint(plan), rewriting.fingerprint());
}

TEST(RewritingTest, WhatWasMeasuredIsKeptWhereItCounts) {
  // How large text is, only a run tells.
  const Plan plan = Shuffle(
      Map(Map(Strings({"a", "b"}),
              [] {
                FunctionBuilder f("twice");
                return f.Return(f.Call("strings.join", {f.Arg(0), f.Arg(0)}));
              }()),
          [] {
            FunctionBuilder f("same");
            return f.Return(f.Call("strings.join", {f.Arg(0), f.Arg(0)}));
          }()),
      10, 1);
  plan::RewriteOptions options;
  options.only = {"shuffle_before_decode"};
  options.measured = {{plan::NodeName(plan, 0), {100, 10}},
                      {plan::NodeName(plan, 1), {100, 100}},
                      {plan::NodeName(plan, 2), {100, 1000}}};
  const plan::Rewriting rewriting = Decide(plan, options);
  EXPECT_EQ(rewriting.measured_size(), 3);
  EXPECT_EQ(plan::Fingerprint(ApplyOrDie(plan, rewriting)),
            rewriting.fingerprint());
  plan::Rewriting forgotten = rewriting;
  forgotten.clear_measured();
  EXPECT_EQ(plan::Apply(plan, forgotten).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(RewritingTest, WhatIsAppendedKeepsItsKeyAndName) {
  const Plan first = Filtered();
  const plan::Rewriting rewriting = Decide(first);
  const Plan plan =
      Prefetch(Batch(Shuffle(Map(first, DoubleSecond()), 4), 2), 3);
  const Plan made = ApplyOrDie(plan, rewriting);
  EXPECT_EQ(Chain(made),
            "range_0 enumerate_2 filter_4 map_3 map_5 shuffle_6 batch_7 "
            "prefetch_8");
  const std::vector<uint64_t> before = plan::KeysOf(plan, 0);
  const std::vector<uint64_t> after = plan::KeysOf(made, 0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(before[5 + i], after[4 + i]) << i;
  EXPECT_EQ(plan.nodes(6).instance(), made.nodes(5).instance());
  EXPECT_TRUE(MessageDifferencer::Equals(plan.nodes(8).output(),
                                         made.nodes(7).output()));
  EXPECT_TRUE(plan::Validate(made).ok());
}

TEST(RewritingTest, OptionsAndFunctionsAreAppended) {
  plan::Options options;
  options.set_deterministic(false);
  const Plan first = Take(Range(10), 99);
  const plan::Rewriting rewriting = Decide(first);
  const Plan plan = WithOptions(FlatMap(first, ToRange()), options);
  const Plan made = ApplyOrDie(plan, rewriting);
  EXPECT_EQ(Chain(made), "range_0 flat_map_2 with_options_3");
  EXPECT_EQ(made.nodes(1).key(), plan::KeysOf(plan, 0)[2]);
}

TEST(RewritingTest, WhatIsAppendedDoesNotNotice) {
  // Batches mix lineages, which only what is random looks at.
  FunctionBuilder f("noise");
  const Function noise = f.Return(f.Call(
      "add", {f.Arg(0), f.Call("random_int",
                               {f.Constant(Vector({})), f.Int(0), f.Int(9)})}));
  const Plan first = Unbatch(Batch(Range(10), 2));
  const plan::Rewriting rewriting = Decide(first);
  EXPECT_EQ(Chain(ApplyOrDie(Batch(first, 5), rewriting)), "range_0 batch_3");
  const absl::Status status =
      plan::Apply(Map(first, noise), rewriting).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("must not notice"));
  // Moving a filter changes no lineage.
  EXPECT_TRUE(
      plan::Apply(Map(Map(Filtered(), First()), noise), Decide(Filtered()))
          .ok());
}

TEST(RewritingTest, OptionsMakeNoOtherPlan) {
  plan::Options options;
  options.set_name("x");
  const plan::Rewriting rewriting = Decide(WithOptions(Filtered(), options));
  EXPECT_EQ(rewriting.nodes(), 6u);
  EXPECT_EQ(Chain(ApplyOrDie(Filtered(), rewriting)),
            "range_0 enumerate_2 filter_4 map_3");
}

TEST(RewritingTest, RefusesWhatIsNoneOfThisPlan) {
  const Plan plan = Filtered();
  const plan::Rewriting good = Decide(plan);
  plan::Rewriting bad = good;
  bad.set_nodes(4);
  EXPECT_EQ(plan::Apply(plan, bad).status().code(),
            absl::StatusCode::kFailedPrecondition);
  bad.set_nodes(0);
  EXPECT_EQ(plan::Apply(plan, bad).status().code(),
            absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.add_passes("magic");
  EXPECT_THAT(plan::Apply(plan, bad).status().message(),
              HasSubstr("a pass must be one of drop_no_ops"));
  bad = good;
  bad.set_fingerprint("0123");
  EXPECT_THAT(plan::Apply(plan, bad).status().message(),
              HasSubstr("must make pipeline 0123"));
  // Another plan, of which it makes something else.
  EXPECT_FALSE(plan::Apply(Batch(Filtered(), 2),
                           [&] {
                             plan::Rewriting other = good;
                             other.set_nodes(6);
                             return other;
                           }())
                   .ok());
  // Nodes that read what is rewritten away.
  Plan inner = Batch(Filtered(), 2);
  inner.mutable_nodes(5)->set_inputs(0, 1);
  EXPECT_THAT(plan::Apply(inner, good).status().message(),
              HasSubstr("must be appended to them"));
}

TEST(RewritingTest, ACacheDoesNotHearOfCounts) {
  // Unknown before; as many as the range has, after.
  FunctionBuilder f("add");
  const Plan first = Unbatch(
      Map(Batch(Range(10), 2), f.Return(f.Call("add", {f.Arg(0), f.Int(1)}))));
  const plan::Rewriting rewriting = Decide(first);
  ASSERT_TRUE(first.nodes(3).cardinality().has_unknown());
  EXPECT_EQ(Chain(ApplyOrDie(Batch(first, 5), rewriting)),
            "range_0 map_2 batch_4");
  EXPECT_EQ(plan::Apply(Cache(first), rewriting).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace penstock::plan_testing
