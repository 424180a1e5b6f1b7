#include "penstock/plan/keepable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/plan/plan_testing.h"

namespace penstock::plan_testing {
namespace {

using plan::FindKeepable;
using plan::Keepable;

// Of the last node.
Keepable Of(const Plan& plan, bool is_ordered = true) {
  return FindKeepable(plan, is_ordered).back();
}

Function Drawn() {
  FunctionBuilder f;
  const auto shape = f.Constant(Vector({}));
  return f.Return(f.Call("random_int", {shape, f.Int(0), f.Int(9)}));
}

Function Python(bool is_pure) {
  Function function;
  function.set_name("f");
  *function.mutable_output() = TensorOf(plan::INT64);
  function.mutable_python()->set_capture("c");
  function.mutable_python()->set_identity("i");
  function.mutable_python()->set_is_pure(is_pure);
  return function;
}

Plan Unordered(Plan plan) {
  plan.mutable_nodes(plan.nodes_size() - 1)
      ->mutable_map()
      ->set_deterministic(false);
  return plan;
}

Plan InFiles(Plan plan) {
  plan.mutable_nodes(plan.nodes_size() - 1)->mutable_cache()->set_filename("f");
  return plan;
}

Plan WithInstance(Plan plan, uint64_t instance) {
  plan.mutable_nodes(plan.nodes_size() - 1)->set_instance(instance);
  return plan;
}

TEST(KeepableTest, RowsThatAreTheSameMayBeKept) {
  const struct {
    std::string name;
    Plan plan;
  } cases[] = {
      {"map", Map(Range(5), Identity())},
      {"files", TextLines({"a"})},
      {"listed", Map(ListFiles("*"), Identity())},
      {"flat_map", FlatMap(Range(5), ToRange())},
      {"inside repeats", FlatMap(Range(5), ToDataset(Repeat(Range(2), 2)))},
      {"interleave", Interleave(Range(5), ToRange(), 2)},
      {"batch", Batch(Map(Range(5), Identity()), 2)},
      {"scan", Scan(Range(5), 0, RunningSum())},
      {"an end", Take(Counter(), 5)},
      {"a root of any kind", Zip({Range(5), Range(5)})},
      {"pure Python", Map(Range(5), Python(true))},
      {"a cache", Map(Cache(Range(5)), Identity())},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(Of(each.plan).why_not, "") << each.name;
    EXPECT_TRUE(Of(each.plan).is_candidate()) << each.name;
  }
}

TEST(KeepableTest, SaysWhyNot) {
  const Plan shuffled = Shuffle(Range(5), 2);
  const struct {
    Plan plan;
    std::string why;
  } cases[] = {
      {Map(shuffled, Identity()), "shuffle_1 gives other rows in every pass"},
      {Map(Range(5), Drawn()), "map_1 gives other rows in every pass"},
      {Map(Map(Range(5), Drawn()), Identity()),
       "map_1 gives other rows in every pass"},
      {FlatMap(Range(5), ToDataset(Map(Range(3), Drawn()))),
       "flat_map_1/map_1 gives other rows in every pass"},
      {Map(ListFiles("*", true), Identity()),
       "list_files_0 gives other rows in every pass"},
      {Map(InFiles(Cache(Range(5))), Identity()),
       "cache_1 has rows that files keep"},
      {Map(Cache(shuffled), Identity()),
       "shuffle_1 gives other rows in every pass"},
      {FlatMap(Range(5), ToDataset(Cache(Range(3)))),
       "flat_map_1/cache_1 keeps its rows itself"},
      {Map(Generator(TensorOf(plan::INT64)), Identity()),
       "from_generator_0 calls Python, which may give other rows"},
      {Map(Range(5), Python(false)),
       "map_1 calls Python that is not declared pure"},
      {Unordered(Map(Range(5), Identity(), 2)),
       "map_1 gives its rows in any order"},
      {Map(Repeat(Range(5), 2), Identity()),
       "rows after repeat_1 come more than once, or without end"},
      {Map(Counter(), Identity()), "rows after map_1 have no end"},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(Of(each.plan).why_not, each.why);
  }
  EXPECT_EQ(Of(Map(Range(5), Identity()), false).why_not,
            "map_1 gives its rows in any order");
}

TEST(KeepableTest, NotWhereNothingIsSaved) {
  EXPECT_FALSE(Of(Range(5)).is_worthwhile);
  EXPECT_FALSE(Of(Prefetch(Map(Range(5), Identity()))).is_worthwhile);
  const Plan plan = Map(Take(Range(5), 3), Identity());
  EXPECT_FALSE(FindKeepable(plan, true)[1].is_worthwhile);
}

// Functions of one name are told apart by what they are.
TEST(KeepableTest, PythonFunctionsAreToldApart) {
  Function other = Python(true);
  other.mutable_python()->set_capture("d");
  EXPECT_NE(Of(Map(Range(5), Python(true))).functions,
            Of(Map(Range(5), other)).functions);
  EXPECT_NE(Of(Map(Map(Range(5), Python(true)), Identity())).functions,
            Of(Map(Map(Range(5), other), Identity())).functions);
}

// Another may have been filled when files were others.
TEST(KeepableTest, CachesAreToldApart) {
  const auto with = [](uint64_t instance) {
    return Of(Map(WithInstance(Cache(Range(5)), instance), Identity()));
  };
  EXPECT_NE(with(1).functions, with(2).functions);
  EXPECT_EQ(with(1).functions, with(1).functions);
}

}  // namespace
}  // namespace penstock::plan_testing
