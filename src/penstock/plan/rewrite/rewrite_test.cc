#include "penstock/plan/rewrite/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "penstock/plan/fingerprint.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/plan/print.h"
#include "penstock/plan/rewrite/rewrite_testing.h"
#include "penstock/plan/validate.h"

namespace penstock::plan_testing {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

plan::Rewritten RewriteOrDie(const Plan& plan,
                             const plan::RewriteOptions& options = {}) {
  absl::StatusOr<plan::Rewritten> rewritten = plan::Rewrite(plan, options);
  if (!rewritten.ok()) {
    ADD_FAILURE() << rewritten.status();
    return {};
  }
  EXPECT_TRUE(plan::Validate(rewritten->plan).ok());
  return *std::move(rewritten);
}

plan::RewriteOptions Only(const std::string& pass) {
  plan::RewriteOptions options;
  options.only = {pass};
  return options;
}

plan::Attr DTypeAttr(plan::DType dtype) {
  plan::Attr attr;
  attr.set_dtype(dtype);
  return attr;
}

// (x, y) -> (x, table[y]): cannot be sure to work.
Function Lookup() {
  FunctionBuilder f("lookup");
  return f.ReturnTuple(
      {f.Arg(0), f.Call("take", {f.Constant(Vector({1, 2, 3})), f.Arg(1)})});
}

// (x, y) -> (x, y * 2)
Function DoubleSecond() {
  FunctionBuilder f("double_second");
  return f.ReturnTuple({f.Arg(0), f.Call("multiply", {f.Arg(1), f.Int(2)})});
}

Function FirstIsEven() {
  FunctionBuilder f("first_is_even");
  return f.Return(
      f.Call("equal", {f.Call("mod", {f.Arg(0), f.Int(2)}), f.Int(0)}));
}

// As it is recorded from Python: with a step for each argument.
Function RecordedFirstIsEven() {
  FunctionBuilder f("recorded_first_is_even");
  const auto first = f.Arg(0);
  f.Arg(1);
  return f.Return(
      f.Call("equal", {f.Call("mod", {first, f.Int(2)}), f.Int(0)}));
}

Function RecordedFirst() {
  FunctionBuilder f("recorded_first");
  const auto first = f.Arg(0);
  f.Arg(1);
  return f.Return(first);
}

// x -> (x, 7)
Function WithSeven() {
  FunctionBuilder f("with_seven");
  return f.ReturnTuple({f.Arg(0), f.Constant(Scalar(int64_t{7}))});
}

Function SecondIsEven() {
  FunctionBuilder f("second_is_even");
  return f.Return(
      f.Call("equal", {f.Call("mod", {f.Arg(1), f.Int(2)}), f.Int(0)}));
}

Function First() {
  FunctionBuilder f("first");
  return f.Return(f.Arg(0));
}

Function RandomPair() {
  FunctionBuilder f("random_pair");
  return f.ReturnTuple({f.Arg(0), f.Call("random_int", {f.Constant(Vector({})),
                                                        f.Int(0), f.Int(9)})});
}

// bytes -> float32 of 1,000 items
Function ToFloats() {
  FunctionBuilder f("to_floats");
  const auto many = f.Constant(Vector(std::vector<int64_t>(1000, 1)));
  const auto small = f.Call("cast", {f.Call("multiply", {f.Arg(0), many})},
                            {{"dtype", DTypeAttr(plan::UINT8)}});
  const auto floats =
      f.Call("cast", {small}, {{"dtype", DTypeAttr(plan::FLOAT32)}});
  return f.Return(f.Call("true_divide", {floats, f.Int(255)}));
}

Function AddTwo() {
  FunctionBuilder f("add_two");
  return f.Return(f.Call("add", {f.Arg(0), f.Int(2)}));
}

Plan Pairs() { return Enumerate(Range(10)); }

struct Case {
  std::string name;
  std::string pass;
  Plan plan;
  std::string chain;  // after it
};

class PassTest : public testing::TestWithParam<Case> {};

TEST_P(PassTest, Rewrites) {
  const Case& c = GetParam();
  const plan::Rewritten rewritten = RewriteOrDie(c.plan, Only(c.pass));
  EXPECT_EQ(Chain(rewritten.plan), c.chain);
  EXPECT_EQ(rewritten.applied.empty(),
            MessageDifferencer::Equals(rewritten.plan, c.plan));
}

INSTANTIATE_TEST_SUITE_P(
    DropNoOps, PassTest,
    testing::ValuesIn<Case>({
        {"Skip0", "drop_no_ops", Skip(Range(9), 0), "range_0"},
        {"Skip1", "drop_no_ops", Skip(Range(9), 1), "range_0 skip_1"},
        {"TakeAll", "drop_no_ops", Take(Range(9), std::nullopt), "range_0"},
        {"TakeEnough", "drop_no_ops", Take(Range(9), 9), "range_0"},
        {"TakeLess", "drop_no_ops", Take(Range(9), 8), "range_0 take_1"},
        {"TakeOfUnknown", "drop_no_ops",
         Take(Filter(Range(9), IsMultipleOf(2)), 9), "range_0 filter_1 take_2"},
        {"TakeOfClaimed", "drop_no_ops",
         Take(AssertCardinality(Filter(Range(9), IsMultipleOf(1)), 9), 9),
         "range_0 filter_1 assert_cardinality_2 take_3"},
        {"Repeat1", "drop_no_ops", Repeat(Range(9), 1), "range_0"},
        {"Repeat2", "drop_no_ops", Repeat(Range(9), 2), "range_0 repeat_1"},
        {"OneShard", "drop_no_ops", Shard(Range(9), 1, 0), "range_0"},
        {"TwoShards", "drop_no_ops", Shard(Range(9), 2, 0), "range_0 shard_1"},
        {"Identity", "drop_no_ops", Map(Range(9), Identity()), "range_0"},
        {"EmptyAfter", "drop_no_ops", Concatenate(Range(9), Range(0)),
         "range_0"},
        {"EmptyBefore", "drop_no_ops", Concatenate(Range(0), Range(9)),
         "range_1"},
        {"EmptyBeforeWithLineage", "drop_no_ops",
         Map(Concatenate(Range(0), Range(9)), RandomPair()),
         "range_0 range_1 concatenate_2 map_3"},
        {"EmptyWithInstance", "drop_no_ops",
         Concatenate(Range(9), Shuffle(Range(0), 2)),
         "range_0 range_1 shuffle_2 concatenate_3"},
        {"EmptyWithOptions", "drop_no_ops",
         Concatenate(Range(9), WithOptions(Range(0), {})),
         "range_0 range_1 with_options_2 concatenate_3"},
        {"PrefetchTwice", "drop_no_ops", Prefetch(Prefetch(Range(9))),
         "range_0 prefetch_1"},
        {"PrefetchSizes", "drop_no_ops", Prefetch(Prefetch(Range(9), 2), 3),
         "range_0 prefetch_2"},
        {"BatchUnbatch", "drop_no_ops", Unbatch(Batch(Pairs(), 4)),
         "range_0 enumerate_1"},
        {"BatchThatDrops", "drop_no_ops", Unbatch(Batch(Range(9), 4, true)),
         "range_0 batch_1 unbatch_2"},
        {"BatchOfShapes", "drop_no_ops",
         Unbatch(Batch(Generator(TensorOf(plan::INT64, {std::nullopt})), 4)),
         "from_generator_0 batch_1 unbatch_2"},
        {"BatchOfErrors", "drop_no_ops",
         Unbatch(Batch(Map(Pairs(), Lookup()), 4)),
         "range_0 enumerate_1 map_2 batch_3 unbatch_4"},
        {"BatchBeforeRandom", "drop_no_ops",
         Map(Unbatch(Batch(Pairs(), 4)), RandomPair()),
         "range_0 enumerate_1 batch_2 unbatch_3 map_4"},
    }),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    FuseMaps, PassTest,
    testing::ValuesIn<Case>({
        {"Two", "fuse_maps", Map(Map(Range(9), AddConstant(1)), MultiplyBy(2)),
         "range_0 map_2"},
        {"ConstantThatNobodyReads", "fuse_maps",
         Map(Map(Range(9), WithSeven()), RecordedFirst()), "range_0 map_2"},
        {"Four", "fuse_maps",
         Map(Map(Map(Map(Range(9), AddConstant(1)), Pair()), DoubleSecond()),
             Lookup()),
         "range_0 map_4"},
        {"Random", "fuse_maps",
         Map(Map(Range(9), AddConstant(1)), RandomPair()),
         "range_0 map_1 map_2"},
        {"OtherParallelism", "fuse_maps",
         Map(Map(Range(9), AddConstant(1), 2), MultiplyBy(2), 3),
         "range_0 map_1 map_2"},
        {"OneParallelism", "fuse_maps",
         Map(Map(Range(9), AddConstant(1), 2), MultiplyBy(2)), "range_0 map_2"},
        {"ShuffleBetween", "fuse_maps",
         Map(Shuffle(Map(Range(9), AddConstant(1)), 2), MultiplyBy(2)),
         "range_0 map_1 shuffle_2 map_3"},
        {"Filters", "fuse_maps",
         Filter(Filter(Range(9), IsMultipleOf(2)), IsLessThan(5)),
         "range_0 filter_2"},
        {"FilterThatMayFail", "fuse_maps",
         Filter(Filter(Pairs(), FirstIsEven()),
                [] {
                  FunctionBuilder f;
                  return f.Return(f.Call(
                      "equal",
                      {f.Call("take", {f.Constant(Vector({1})), f.Arg(1)}),
                       f.Int(1)}));
                }()),
         "range_0 enumerate_1 filter_2 filter_3"},
    }),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Moves, PassTest,
    testing::ValuesIn<Case>({
        {"FilterBeforeMap", "push_filter",
         Filter(Map(Pairs(), DoubleSecond()), FirstIsEven()),
         "range_0 enumerate_1 filter_3 map_2"},
        {"RecordedFilterBeforeMap", "push_filter",
         Filter(Map(Pairs(), DoubleSecond()), RecordedFirstIsEven()),
         "range_0 enumerate_1 filter_3 map_2"},
        {"FilterBeforeMaps", "push_filter",
         Filter(Map(Map(Pairs(), DoubleSecond()), DoubleSecond()),
                FirstIsEven()),
         "range_0 enumerate_1 filter_4 map_2 map_3"},
        {"FilterOfResult", "push_filter",
         Filter(Map(Pairs(), DoubleSecond()), SecondIsEven()),
         "range_0 enumerate_1 map_2 filter_3"},
        {"FilterAfterRandom", "push_filter",
         Filter(Map(Pairs(), RandomPair()), FirstIsEven()),
         "range_0 enumerate_1 map_2 filter_3"},
        {"FilterAfterFailing", "push_filter",
         Filter(Map(Pairs(), Lookup()), FirstIsEven()),
         "range_0 enumerate_1 map_2 filter_3"},
        {"ColumnsBeforeShuffle", "project_early",
         Map(Shuffle(Pairs(), 5), First()),
         "range_0 enumerate_1 enumerate_1:columns shuffle_2 map_3"},
        {"RecordedColumnsBeforeShuffle", "project_early",
         Map(Shuffle(Pairs(), 5), RecordedFirst()),
         "range_0 enumerate_1 enumerate_1:columns shuffle_2 map_3"},
        {"ColumnsWithFilter", "project_early",
         Map(Filter(Shuffle(Pairs(), 5), SecondIsEven()), First()),
         "range_0 enumerate_1 shuffle_2 filter_3 map_4"},
        {"ColumnsNotThroughCache", "project_early",
         Map(Cache(Map(Pairs(), DoubleSecond())), First()),
         "range_0 enumerate_1 map_2 cache_3 map_4"},
        {"ShuffleFirst", "shuffle_before_decode",
         Shuffle(Map(Range(9), ToFloats()), 5), "range_0 shuffle_2 map_1"},
        {"ShuffleOfSmall", "shuffle_before_decode",
         Shuffle(Map(Pairs(), First()), 5),
         "range_0 enumerate_1 map_2 shuffle_3"},
        {"BatchMapUnbatch", "vectorize_pairs",
         Unbatch(Map(Batch(Range(9), 4), AddTwo())), "range_0 map_2"},
        {"BatchSumUnbatch", "vectorize_pairs",
         Unbatch(Map(Batch(Range(9), 4),
                     [] {
                       FunctionBuilder f;
                       const auto x = f.Arg(0);
                       return f.Return(f.Call("add", {x, f.Call("sum", {x})}));
                     }())),
         "range_0 batch_1 map_2 unbatch_3"},
        {"CastLate", "growers_last", Shuffle(Map(Range(9), ToFloats()), 5),
         "range_0 map_1 shuffle_2 map_1:late"},
        {"NothingGrows", "growers_last",
         Shuffle(Map(Range(9), AddConstant(1)), 5), "range_0 map_1 shuffle_2"},
    }),
    [](const auto& info) { return info.param.name; });

int NumCalls(const Function& function) {
  int calls = 0;
  for (const auto& step : function.steps()) calls += step.has_call() ? 1 : 0;
  return calls;
}

// Of a map of `plan`, how many calls its function has.
int NumCalls(const Plan& plan, const std::string& name) {
  for (int i = 0; i < plan.nodes_size(); ++i) {
    if (plan::NodeName(plan, i) != name) continue;
    return NumCalls(plan.nodes(i).map().function());
  }
  return -1;
}

TEST(ProjectEarly, DoesNotComputeWhatNobodyReads) {
  const Plan plan = Map(Shuffle(Map(Pairs(), DoubleSecond()), 5), First());
  EXPECT_EQ(NumCalls(plan, "map_2"), 1);
  const plan::Rewritten rewritten = RewriteOrDie(plan, Only("project_early"));
  EXPECT_EQ(NumCalls(rewritten.plan, "map_2"), 0);
}

TEST(ProjectEarly, KeepsWhatMayFail) {
  const Plan plan = Map(Shuffle(Map(Pairs(), Lookup()), 5), First());
  const plan::Rewritten rewritten = RewriteOrDie(plan, Only("project_early"));
  EXPECT_FALSE(rewritten.applied.empty());
  EXPECT_EQ(NumCalls(rewritten.plan, "map_2"), 1);
}

TEST(PushFilter, AdvisesWhereErrorsWouldHide) {
  const Plan plan = Filter(Map(Pairs(), Lookup()), FirstIsEven());
  plan::RewriteOptions options = Only("push_filter");
  options.measured["map_2"] = {1000, 8};
  options.measured["filter_3"] = {100, 8};
  const plan::Rewritten refused = RewriteOrDie(plan, options);
  ASSERT_EQ(refused.declined.size(), 1);
  EXPECT_EQ(plan::ToString(refused.declined[0]),
            "push_filter: map_2, filter_3: map_2 may fail, and errors of "
            "elements that are left out would not be seen; it would run 10.0 "
            "times less often; allow it with may_hide_errors");
  options.may_hide_errors = true;
  EXPECT_EQ(Chain(RewriteOrDie(plan, options).plan),
            "range_0 enumerate_1 filter_3 map_2");
}

// x -> (x + 1, many items): a label, and what is costly.
struct Labelled {
  bool is_label_sure = true;
  bool is_rest_sure = true;
  bool is_label_of_all = false;
};

Function Label(const Labelled& how) {
  FunctionBuilder f("labelled");
  const auto x = f.Arg(0);
  const auto look_up = [&](FunctionBuilder::Step at) {
    return f.Call("take", {f.Constant(Vector({1, 2, 3})), at});
  };
  auto many =
      f.Call("multiply", {how.is_rest_sure ? x : look_up(x),
                          f.Constant(Vector(std::vector<int64_t>(1000, 1)))});
  auto label = f.Call("add", {how.is_label_sure ? x : look_up(x), f.Int(1)});
  if (how.is_label_of_all) label = f.Call("sum", {many});
  return f.ReturnTuple({label, many});
}

// The chain after push_filter, of 1,000 rows of which `kept` are left.
plan::Rewritten Pushed(const Plan& plan, double kept,
                       bool may_hide_errors = false) {
  plan::RewriteOptions options = Only("push_filter");
  options.may_hide_errors = may_hide_errors;
  options.measured["map_1"] = {1000, 8};
  options.measured["filter_2"] = {kept, 8};
  return RewriteOrDie(plan, options);
}

TEST(PushFilter, DoesTheSmallPartOfAMapFirst) {
  const Plan plan = Filter(Map(Range(9), Label({})), RecordedFirstIsEven());
  const plan::Rewritten rewritten = Pushed(plan, 200);
  EXPECT_EQ(Chain(rewritten.plan), "range_0 filter_2 map_1");
  // x + 1, mod and equal: nothing of the many.
  const Function& predicate = rewritten.plan.nodes(1).filter().predicate();
  EXPECT_EQ(NumCalls(predicate), 3);
  EXPECT_EQ(NumCalls(rewritten.plan, "map_1"), 2);
}

TEST(PushFilter, DoesNoPartTwiceForLittle) {
  const std::string as_it_was = "range_0 map_1 filter_2";
  const Plan plan = Filter(Map(Range(9), Label({})), RecordedFirstIsEven());
  EXPECT_EQ(Chain(Pushed(plan, 900).plan), as_it_was);
  EXPECT_EQ(Chain(RewriteOrDie(plan, Only("push_filter")).plan), as_it_was);
  const Plan costly = Filter(Map(Range(9), Label({.is_label_of_all = true})),
                             RecordedFirstIsEven());
  EXPECT_EQ(Chain(Pushed(costly, 200).plan), as_it_was);
}

TEST(PushFilter, HidesNoErrorOfTheRestOfAMap) {
  const Plan plan = Filter(Map(Range(9), Label({.is_rest_sure = false})),
                           RecordedFirstIsEven());
  const plan::Rewritten refused = Pushed(plan, 200);
  EXPECT_EQ(Chain(refused.plan), "range_0 map_1 filter_2");
  ASSERT_EQ(refused.declined.size(), 1);
  EXPECT_EQ(plan::ToString(refused.declined[0]),
            "push_filter: map_1, filter_2: map_1 may fail, and errors of "
            "elements that are left out would not be seen; it would run 5.0 "
            "times less often; allow it with may_hide_errors");
  EXPECT_EQ(Chain(Pushed(plan, 200, true).plan), "range_0 filter_2 map_1");
}

TEST(PushFilter, MayFailInThePartThatIsDoneAnyway) {
  const Plan plan = Filter(Map(Range(9), Label({.is_label_sure = false})),
                           RecordedFirstIsEven());
  EXPECT_EQ(Chain(Pushed(plan, 200).plan), "range_0 filter_2 map_1");
}

// A filter behind a shuffle of what a map enlarges: the shuffle goes first, and
// the filter after it.
TEST(PushFilter, FollowsAShuffle) {
  const Plan plan =
      Filter(Shuffle(Map(Range(9), Label({})), 5), RecordedFirstIsEven());
  plan::RewriteOptions options;
  options.measured["map_1"] = {1000, 8000};
  options.measured["filter_3"] = {200, 8000};
  EXPECT_EQ(Chain(RewriteOrDie(plan, options).plan),
            "range_0 shuffle_2 filter_3 map_1");
}

TEST(ShuffleBeforeDecode, NeedsSizes) {
  // Strings: no spec says how large they are.
  FunctionBuilder f;
  const Plan plan = Shuffle(
      Map(Strings({"a", "b"}), f.Return(f.Call("strings.upper", {f.Arg(0)}))),
      5);
  plan::RewriteOptions options = Only("shuffle_before_decode");
  const plan::Rewritten unknown = RewriteOrDie(plan, options);
  EXPECT_THAT(unknown.applied, IsEmpty());
  ASSERT_EQ(unknown.declined.size(), 1);
  EXPECT_THAT(unknown.declined[0].why, HasSubstr("not known; measure"));
  options.measured["map_1"] = {100, 5000};
  options.measured[plan::NodeName(plan, 0)] = {100, 50};
  const plan::Rewritten known = RewriteOrDie(plan, options);
  ASSERT_EQ(known.applied.size(), 1);
  EXPECT_THAT(known.applied[0].why, "it holds elements of 50 bytes, not 5000");
}

// A filter on what the first map makes goes between the two, and so they stay
// two.
TEST(Rewrite, MovesBeforeItFuses) {
  const Plan plan =
      Filter(Map(Map(Range(9), Pair()), DoubleSecond()), FirstIsEven());
  plan::RewriteOptions options;
  options.without = {"push_filter"};
  EXPECT_EQ(Chain(RewriteOrDie(plan, options).plan), "range_0 map_2 filter_3");
  // x -> (x, x) hands x on as it is.
  EXPECT_EQ(Chain(RewriteOrDie(plan).plan), "range_0 filter_3 map_2");
  FunctionBuilder f("parse");
  const auto x = f.Arg(0);
  const Function parse = f.ReturnTuple({f.Call("multiply", {x, f.Int(3)}), x});
  EXPECT_EQ(Chain(RewriteOrDie(Filter(Map(Map(Range(9), parse), DoubleSecond()),
                                      FirstIsEven()))
                      .plan),
            "range_0 map_1 filter_3 map_2");
}

// However many there are: none is fused before the filter is past them.
TEST(Rewrite, MovesPastSeveralBeforeItFuses) {
  FunctionBuilder f("parse");
  const auto x = f.Arg(0);
  const Function parse = f.ReturnTuple({f.Call("multiply", {x, f.Int(3)}), x});
  Plan plan = Map(Range(9), parse);
  for (int i = 0; i < 4; ++i) plan = Map(std::move(plan), DoubleSecond());
  plan = Filter(std::move(plan), FirstIsEven());
  EXPECT_EQ(Chain(RewriteOrDie(plan).plan), "range_0 map_1 filter_6 map_5");
}

TEST(Rewrite, PassesCanBeSwitchedOff) {
  const Plan plan = Skip(Map(Map(Range(9), AddConstant(1)), MultiplyBy(2)), 0);
  plan::RewriteOptions options;
  options.without = {"fuse_maps"};
  EXPECT_EQ(Chain(RewriteOrDie(plan, options).plan), "range_0 map_1 map_2");
  for (const plan::Pass& pass : plan::AllPasses())
    options.without.push_back(pass.name);
  const plan::Rewritten nothing = RewriteOrDie(plan, options);
  EXPECT_TRUE(MessageDifferencer::Equals(nothing.plan, plan));
  options.without = {"fuse_map"};
  EXPECT_THAT(plan::Rewrite(plan, options).status().message(),
              HasSubstr("a pass must be one of drop_no_ops, push_filter, "));
}

TEST(Rewrite, SaysWhatItDid) {
  Plan plan = Map(Map(Range(9), AddConstant(1)), MultiplyBy(2));
  for (Node& node : *plan.mutable_nodes()) {
    node.mutable_made_at()->set_file("train.py");
    node.mutable_made_at()->set_line(7);
  }
  const plan::Rewritten rewritten = RewriteOrDie(plan);
  std::vector<std::string> said;
  for (const plan::Remark& remark : rewritten.applied) {
    said.push_back(plan::ToString(remark));
  }
  EXPECT_THAT(said, ElementsAre("fuse_maps: map_1 (train.py:7), map_2 "
                                "(train.py:7): one function does both"));
}

TEST(Rewrite, ReachesDatasetsOfFunctions) {
  FunctionBuilder f;
  Plan inside = RangeTo(Bound(0), {LeafOf(plan::INT64)});
  inside = Map(Map(inside, AddConstant(1)), MultiplyBy(2));
  const Plan plan =
      Interleave(Range(5), f.ReturnDataset(inside, {f.Arg(0)}), 2, 1);
  const plan::Rewritten rewritten = RewriteOrDie(plan);
  ASSERT_EQ(rewritten.applied.size(), 1);
  EXPECT_EQ(rewritten.applied[0].nodes[0].name, "interleave_1/map_1");
}

// Keys and names that say nothing new are not written down, so that what only
// prefetches is the plan that it was.
TEST(Rewrite, SaysOnlyWhatIsOther) {
  const Plan once = Prefetch(Shuffle(Range(9), 3), 2);
  const Plan twice = Prefetch(once);
  const plan::Rewritten rewritten = RewriteOrDie(twice);
  EXPECT_EQ(rewritten.plan.nodes_size(), 3);
  EXPECT_FALSE(rewritten.plan.nodes(1).has_key());
  EXPECT_EQ(plan::Fingerprint(rewritten.plan), plan::Fingerprint(twice));
}

TEST(Rewrite, RefusesWhatIsNotValid) {
  Plan plan = Map(Range(9), AddConstant(1));
  plan.mutable_nodes(1)->clear_output();
  EXPECT_FALSE(plan::Rewrite(plan).ok());
  EXPECT_FALSE(plan::Rewrite(Plan()).ok());
}

TEST(Rewrite, LongPlansAreLeftAlone) {
  Plan plan = Range(9);
  for (int i = 0; i < 2000; ++i) plan = Skip(std::move(plan), 0);
  const plan::Rewritten rewritten = RewriteOrDie(plan);
  EXPECT_THAT(rewritten.applied, IsEmpty());
  ASSERT_EQ(rewritten.declined.size(), 1);
  EXPECT_THAT(rewritten.declined[0].why, HasSubstr("are left as they are"));
}

TEST(Rewrite, FunctionsDoNotGrowWithoutBound) {
  Plan plan = Range(9);
  for (int i = 0; i < 1000; ++i) plan = Map(std::move(plan), AddConstant(1));
  const plan::Rewritten rewritten = RewriteOrDie(plan);
  // Functions have at most 128 steps.
  EXPECT_LT(rewritten.plan.nodes_size(), 20);
}

}  // namespace
}  // namespace penstock::plan_testing
