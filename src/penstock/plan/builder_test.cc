#include "penstock/plan/builder.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/plan/validate.h"

namespace penstock::plan_testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Node CacheNode() {
  Node node;
  node.mutable_cache();
  return node;
}

TEST(Append, KeepsTheNumbersOfTheFirstInput) {
  const Plan first = Batch(Range(5), 2);
  const Plan second = Map(Map(Range(3), Identity()), Identity());
  const Plan plan = Zip({first, second});
  ASSERT_EQ(plan.nodes_size(), 6);
  EXPECT_TRUE(plan.nodes(0).has_range());
  EXPECT_THAT(plan.nodes(1).inputs(), ElementsAre(0));
  EXPECT_TRUE(plan.nodes(2).has_range());
  EXPECT_THAT(plan.nodes(3).inputs(), ElementsAre(2));
  EXPECT_THAT(plan.nodes(4).inputs(), ElementsAre(3));
  EXPECT_THAT(plan.nodes(5).inputs(), ElementsAre(1, 4));
}

TEST(Append, LooksAtNothingThatTheCallerSays) {
  Node node = CacheNode();
  node.add_inputs(77);
  node.set_instance(77);
  node.mutable_cardinality()->set_finite(77);
  const Plan plan = AppendOrDie({Range(5)}, node);
  EXPECT_THAT(plan.nodes(1).inputs(), ElementsAre(0));
  EXPECT_NE(plan.nodes(1).instance(), 77);
  EXPECT_EQ(plan.nodes(1).cardinality().finite(), 5);
}

TEST(Append, GivesAnInstanceToWhatIsShared) {
  const auto has_instance = [](const Plan& plan) {
    return plan.nodes(plan.nodes_size() - 1).has_instance();
  };
  EXPECT_TRUE(has_instance(Cache(Range(5))));
  EXPECT_TRUE(has_instance(Shuffle(Range(5), 2)));
  EXPECT_TRUE(has_instance(Random()));
  EXPECT_TRUE(has_instance(ListFiles("*", /*shuffle=*/true)));
  EXPECT_FALSE(has_instance(ListFiles("*", /*shuffle=*/false)));
  EXPECT_FALSE(has_instance(Map(Range(5), Identity())));
  EXPECT_FALSE(has_instance(Batch(Range(5), 2)));
  EXPECT_NE(Cache(Range(5)).nodes(1).instance(),
            Cache(Range(5)).nodes(1).instance());
}

TEST(Append, GivesAnInstanceToRandomFunctions) {
  for (const functions::Function& function : functions::AllFunctions()) {
    FunctionBuilder f;
    Node node;
    *node.mutable_map()->mutable_function() =
        f.Return(f.Call(std::string(function.name), {f.Arg(0)}));
    EXPECT_EQ(plan::NeedsInstance(node), function.is_random) << function.name;
  }
}

TEST(Append, BoundValuesGrow) {
  const plan::TensorSpec a = LeafOf(plan::INT64);
  const plan::TensorSpec b = LeafOf(plan::STRING, {std::nullopt});
  const Plan first = RangeTo(Bound(0), {a});
  const Plan second = RangeTo(Bound(0), {a, b});
  const Plan zipped = Zip({first, second});
  ASSERT_EQ(zipped.bound_size(), 2);
  EXPECT_EQ(zipped.bound(1).SerializeAsString(), b.SerializeAsString());
  EXPECT_EQ(AppendOrDie({first}, CacheNode(), {a, b}).bound_size(), 2);
  EXPECT_EQ(AppendOrDie({second}, CacheNode(), {a}).bound_size(), 2);

  const Plan other = RangeTo(Constant(3), {b});
  Node zip;
  *zip.mutable_zip()->mutable_structure() =
      TupleOf({TensorOf(plan::INT64), TensorOf(plan::INT64)});
  EXPECT_THAT(
      std::string(TryAppend({first, other}, zip).status().message()),
      HasSubstr("must agree on bound value 0, int64(); got string(None,)"));
}

TEST(Append, ConstantsOfAnyIntegerDtypeCount) {
  Tensor size;
  size.set_dtype(plan::UINT8);
  size.set_data("\3", 1);
  Node node;
  *node.mutable_batch()->mutable_size() = Constant(size);
  EXPECT_EQ(AppendOrDie({Range(7)}, node).nodes(1).cardinality().finite(), 3);

  size.set_dtype(plan::UINT64);
  size.set_data(std::string(8, '\xff'));
  *node.mutable_batch()->mutable_size() = Constant(size);
  EXPECT_THAT(std::string(TryAppend({Range(7)}, node).status().message()),
              HasSubstr("a number must be below 2^63; got 184467440737095516"));
}

TEST(Append, RefusesAPlanWithoutNodes) {
  EXPECT_THAT(
      std::string(TryAppend({Plan()}, CacheNode()).status().message()),
      HasSubstr("an input must be a dataset; got a plan without nodes"));
}

TEST(Append, RefusesTooManyNodes) {
  Plan plan = Range(5);
  const Plan step = Cache(plan);
  while (plan.nodes_size() < plan::kMaxNodes) {
    *plan.add_nodes() = step.nodes(1);
  }
  EXPECT_THAT(std::string(TryAppend({plan}, CacheNode()).status().message()),
              HasSubstr("at most 10000 nodes; got 10001"));
}

TEST(Append, RefusesTooManyBytes) {
  Node node;
  *node.mutable_read_files()->mutable_files() =
      Constant(Text(std::string(plan::kMaxPlanBytes, 'x')));
  node.mutable_read_files()->mutable_text();
  EXPECT_THAT(std::string(TryAppend({}, node).status().message()),
              HasSubstr("a plan must take at most 16.0 MiB; got 16.0 MiB"));
}

// A function that makes a dataset by a function that makes a dataset …
Plan Nested(int depth) {
  Plan plan = Range(2);
  for (int i = 0; i < depth; ++i) {
    Node node;
    *node.mutable_flat_map()->mutable_function() = ToDataset(std::move(plan));
    plan = AppendOrDie({Range(2)}, std::move(node));
  }
  return plan;
}

TEST(Append, DeepestPlanParsesWithDefaults) {
  Plan plan = Nested(plan::kMaxFunctionDepth);
  ElementSpec deep = TensorOf(plan::INT64, {3});
  for (int i = 0; i < plan::kMaxSpecDepth; ++i) deep = TupleOf({deep});
  // Worst place for it: a scan's state in the innermost plan.
  Plan* innermost = &plan;
  for (int i = 0; i < plan::kMaxFunctionDepth; ++i) {
    innermost = innermost->mutable_nodes(1)
                    ->mutable_flat_map()
                    ->mutable_function()
                    ->mutable_dataset();
  }
  *innermost->mutable_nodes(0)
       ->mutable_scan()
       ->mutable_initial_state()
       ->mutable_spec() = deep;
  Plan parsed;
  EXPECT_TRUE(parsed.ParseFromString(plan.SerializeAsString()));
}

TEST(Append, RefusesDeeperFunctions) {
  Node node;
  *node.mutable_flat_map()->mutable_function() =
      ToDataset(Nested(plan::kMaxFunctionDepth));
  EXPECT_THAT(std::string(TryAppend({Range(2)}, node).status().message()),
              HasSubstr("must be nested at most 8 deep"));
}

TEST(Append, ErrorsInAFunctionsDatasetNameBothNodes) {
  Function function = ToDataset(Batch(Range(5), 2));
  function.mutable_dataset()->mutable_nodes(1)->mutable_batch()->clear_size();
  Node node;
  node.mutable_made_at()->set_file("train.py");
  node.mutable_made_at()->set_line(12);
  *node.mutable_flat_map()->mutable_function() = function;
  EXPECT_EQ(std::string(TryAppend({Range(2)}, node).status().message()),
            "batch_size must be given; got nothing\n"
            "  at node \"batch_1\"\n"
            "  at node \"flat_map_1\", made at train.py:12");
}

// The function of the inner flat_map uses a value of the outer one.
TEST(Append, ValuesReachInnerFunctions) {
  const std::vector<plan::TensorSpec> outer = {LeafOf(plan::INT64)};
  FunctionBuilder add("add_outer");
  const Function add_outer =
      add.Return(add.Call("add", {add.Arg(0), add.BoundValue(0)}));
  Node map;
  *map.mutable_map()->mutable_function() = add_outer;
  const Plan inner = AppendOrDie({Range(3)}, map, outer);

  FunctionBuilder f;
  const auto x = f.Arg(0);
  EXPECT_EQ(FlatMap(Range(5), f.ReturnDataset(inner, {x}))
                .nodes(1)
                .cardinality()
                .finite(),
            15);

  EXPECT_FALSE(TryAppend({Range(3)}, map).ok());  // nothing is bound here
}

}  // namespace
}  // namespace penstock::plan_testing
