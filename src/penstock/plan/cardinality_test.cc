#include "penstock/plan/cardinality.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::plan_testing {
namespace {

using plan::Finite;
using plan::Infinite;
using plan::Unknown;

struct CardinalityCase {
  std::string name;
  Plan plan;
  plan::Cardinality want;
};

class CardinalityTest : public ::testing::TestWithParam<CardinalityCase> {};

TEST_P(CardinalityTest, Follows) {
  const Plan& plan = GetParam().plan;
  EXPECT_EQ(plan::ToString(plan.nodes(plan.nodes_size() - 1).cardinality()),
            plan::ToString(GetParam().want));
}

Plan Odd() { return Filter(Range(10), IsMultipleOf(2)); }  // unknown
Plan Endless() { return Repeat(Range(42)); }
Plan Empty() { return Range(0); }
Plan OfSpec(const Dims& dims, int64_t rows) {
  Plan plan = Batch(Range(rows), 1, true);
  plan::TensorSpec spec = LeafOf(plan::INT64, dims);
  *plan.mutable_nodes(1)->mutable_output()->mutable_tensor() = spec;
  return plan;
}
// Built with a value that is known only when the sub-plan starts.
Plan Counted(Plan input, Node node) {
  return AppendOrDie({std::move(input)}, std::move(node),
                     {LeafOf(plan::INT64)});
}
Plan TakeBound(Plan input) {
  Node node;
  *node.mutable_take()->mutable_count() = Bound(0);
  return Counted(std::move(input), std::move(node));
}
Plan SkipBound(Plan input) {
  Node node;
  *node.mutable_skip()->mutable_count() = Bound(0);
  return Counted(std::move(input), std::move(node));
}
Plan RepeatBound(Plan input) {
  Node node;
  *node.mutable_repeat()->mutable_count() = Bound(0);
  return Counted(std::move(input), std::move(node));
}
Plan BatchBound(Plan input) {
  Node node;
  *node.mutable_batch()->mutable_size() = Bound(0);
  return Counted(std::move(input), std::move(node));
}
Plan ShardBound(Plan input) {
  Node node;
  *node.mutable_shard()->mutable_num_shards() = Bound(0);
  *node.mutable_shard()->mutable_index() = Constant(0);
  return Counted(std::move(input), std::move(node));
}
Plan Slices(Tensor tensor, bool slices) {
  Node node;
  *node.mutable_values()->add_values() = Constant(std::move(tensor));
  *node.mutable_values()->mutable_structure() = TensorOf(plan::INT64);
  node.mutable_values()->set_slices(slices);
  return AppendOrDie({}, std::move(node));
}

const auto kName = [](const auto& info) { return info.param.name; };
using Cases = std::vector<CardinalityCase>;

INSTANTIATE_TEST_SUITE_P(
    Sources, CardinalityTest,
    ::testing::ValuesIn(Cases{
        {"Range", Range(42), Finite(42)},
        {"RangeOfNone", Range(0), Finite(0)},
        {"RangeBackwards", Range(10, 0, -3), Finite(4)},
        {"RangeExactly", Range(0, 9, 3), Finite(3)},
        {"RangeWrongSign", Range(0, 5, -1), Finite(0)},
        {"RangeNegativeStop", Range(-5), Finite(0)},
        {"RangeWide", Range(INT64_MIN, INT64_MAX, INT64_MAX), Finite(3)},
        {"RangeSmallest", Range(INT64_MAX, INT64_MIN, INT64_MIN), Finite(2)},
        {"RangeOfFloats", FloatRange(0, 1, 0.3), Finite(4)},
        {"RangeOfFloatsBackwards", FloatRange(1, 0, -0.5), Finite(2)},
        {"RangeOfFloatsWrongSign", FloatRange(1, 0, 0.5), Finite(0)},
        {"RangeBound", RangeTo(Bound(0), {LeafOf(plan::INT64)}), Unknown()},
        {"Counter", Counter(), Infinite()},
        {"Random", Random(), Infinite()},
        {"Rows", Ints({1, 2, 3}), Finite(3)},
        {"Tensors", Slices(Vector({1, 2, 3}), false), Finite(1)},
        {"Slices", Slices(Vector({1, 2, 3}), true), Finite(3)},
        {"Generator", Generator(TensorOf(plan::INT64)), Unknown()},
        {"ListFiles", ListFiles("*.txt"), Unknown()},
        {"ReadFiles", TextLines({"a.txt"}), Unknown()},
    }),
    kName);

INSTANTIATE_TEST_SUITE_P(
    Groups, CardinalityTest,
    ::testing::ValuesIn(Cases{
        {"Window", Window(Range(5), 2), Finite(3)},
        {"WindowDropped", Window(Range(5), 2, 0, 1, true), Finite(2)},
        {"WindowSliding", Window(Range(5), 3, 1, 2), Finite(5)},
        {"WindowSlidingDropped", Window(Range(7), 3, 1, 2, true), Finite(3)},
        {"WindowTooLarge", Window(Range(3), 4, 1, 1, true), Finite(0)},
        {"WindowInfinite", Window(Counter(), 2), Infinite()},
        {"WindowUnknown", Window(TextLines({"a"}), 2), Unknown()},
        {"GroupByWindow", GroupByWindow(Range(5), Mod(2), 2), Unknown()},
        {"GroupByWindowOfNone", GroupByWindow(Range(0), Mod(2), 2), Finite(0)},
        {"Sample", SampleFrom({Range(3), Range(4)}), Finite(7)},
        {"SampleByWeight", SampleFrom({Range(3), Range(4)}, {0, 1}), Finite(4)},
        {"SampleInfinite", SampleFrom({Range(3), Counter()}), Infinite()},
        {"SampleStops", SampleFrom({Range(3), Counter()}, {}, 1, true),
         Unknown()},
        {"SampleStopsNever", SampleFrom({Counter(), Counter()}, {}, 1, true),
         Infinite()},
        {"Choose", ChooseFrom(Range(3), {Range(3)}), Unknown()},
        {"ChooseNone", ChooseFrom(Range(0), {Range(3)}), Finite(0)},
        {"Unique", Unique(Range(3)), Unknown()},
        {"AssertCardinality", AssertCardinality(TextLines({"a"}), 4),
         Finite(4)},
        {"SparseBatch", SparseBatch(Range(5), 2, {}), Finite(3)},
        {"RaggedBatchDropped", RaggedBatch(Range(5), 2, true), Finite(2)},
    }),
    kName);

INSTANTIATE_TEST_SUITE_P(
    Same, CardinalityTest,
    ::testing::ValuesIn(Cases{
        {"Map", Map(Range(42), Identity()), Finite(42)},
        {"MapInfinite", Map(Endless(), Identity()), Infinite()},
        {"MapUnknown", Map(Odd(), Identity()), Unknown()},
        {"Shuffle", Shuffle(Range(42), 5), Finite(42)},
        {"ShuffleUnknown", Shuffle(Odd(), 5), Unknown()},
        {"Enumerate", Enumerate(Range(42)), Finite(42)},
        {"Prefetch", Prefetch(Range(42), 3), Finite(42)},
        {"PrefetchInfinite", Prefetch(Endless()), Infinite()},
        {"Cache", Cache(Range(42)), Finite(42)},
        {"CacheUnknown", Cache(Odd()), Unknown()},
        {"Scan", Scan(Range(42), 0, RunningSum()), Finite(42)},
        {"ScanInfinite", Scan(Endless(), 0, RunningSum()), Infinite()},
        {"Options", WithOptions(Range(42), {}), Finite(42)},
    }),
    kName);

INSTANTIATE_TEST_SUITE_P(
    Fewer, CardinalityTest,
    ::testing::ValuesIn(Cases{
        {"Filter", Odd(), Unknown()},
        {"FilterEmpty", Filter(Empty(), IsLessThan(1)), Finite(0)},
        {"FilterInfinite", Filter(Endless(), IsLessThan(1)), Unknown()},
        {"TakeWhile", TakeWhile(Range(5), IsLessThan(1)), Unknown()},
        {"TakeWhileEmpty", TakeWhile(Empty(), IsLessThan(1)), Finite(0)},
        {"IgnoreErrors", IgnoreErrors(Range(5)), Unknown()},
        {"IgnoreErrorsEmpty", IgnoreErrors(Empty()), Finite(0)},
        {"Reduce", Reduce(Range(5), 0, Sum()), Finite(1)},
        {"ReduceUnknown", Reduce(Odd(), 0, Sum()), Finite(1)},
        {"TakeLess", Take(Range(42), 10), Finite(10)},
        {"TakeMore", Take(Range(42), 100), Finite(42)},
        {"TakeAll", Take(Range(42), {}), Finite(42)},
        {"TakeNone", Take(Range(42), 0), Finite(0)},
        {"TakeInfinite", Take(Endless(), 10), Finite(10)},
        {"TakeAllInfinite", Take(Endless(), {}), Infinite()},
        {"TakeUnknown", Take(Odd(), 10), Unknown()},
        {"TakeNoneUnknown", Take(Odd(), 0), Finite(0)},
        {"TakeBound", TakeBound(Range(42)), Unknown()},
        {"TakeBoundEmpty", TakeBound(Empty()), Finite(0)},
        {"TakeBoundInfinite", TakeBound(Endless()), Unknown()},
        {"SkipSome", Skip(Range(42), 10), Finite(32)},
        {"SkipMore", Skip(Range(42), 100), Finite(0)},
        {"SkipNone", Skip(Range(42), 0), Finite(42)},
        {"SkipEverything", Skip(Range(42), {}), Finite(0)},
        {"SkipInfinite", Skip(Endless(), 10), Infinite()},
        {"SkipUnknown", Skip(Odd(), 10), Unknown()},
        {"SkipBound", SkipBound(Range(42)), Unknown()},
        {"SkipBoundInfinite", SkipBound(Endless()), Infinite()},
        {"ShardFirst", Shard(Range(10), 3, 0), Finite(4)},
        {"ShardLast", Shard(Range(10), 3, 2), Finite(3)},
        {"ShardTooMany", Shard(Range(2), 5, 4), Finite(0)},
        {"ShardInfinite", Shard(Endless(), 3, 0), Infinite()},
        {"ShardUnknown", Shard(Odd(), 3, 0), Unknown()},
        {"ShardBound", ShardBound(Range(10)), Unknown()},
        {"ShardBoundEmpty", ShardBound(Empty()), Finite(0)},
    }),
    kName);

INSTANTIATE_TEST_SUITE_P(
    Repeated, CardinalityTest,
    ::testing::ValuesIn(Cases{
        {"Times", Repeat(Range(42), 2), Finite(84)},
        {"Zero", Repeat(Range(42), 0), Finite(0)},
        {"ForEver", Repeat(Range(42)), Infinite()},
        {"ForEverEmpty", Repeat(Empty()), Finite(0)},
        {"ForEverUnknown", Repeat(Odd()), Infinite()},
        {"TimesUnknown", Repeat(Odd(), 2), Unknown()},
        {"ZeroUnknown", Repeat(Odd(), 0), Finite(0)},
        {"TimesInfinite", Repeat(Endless(), 2), Infinite()},
        {"ZeroInfinite", Repeat(Endless(), 0), Finite(0)},
        {"Nested", Repeat(Repeat(Range(3), 2), 4), Finite(24)},
        {"Overflow", Repeat(Range(INT64_MAX), 3), Unknown()},
        {"BoundCount", RepeatBound(Range(42)), Unknown()},
        {"BoundEmpty", RepeatBound(Empty()), Finite(0)},
    }),
    kName);

INSTANTIATE_TEST_SUITE_P(
    Batches, CardinalityTest,
    ::testing::ValuesIn(Cases{
        {"Batch", Batch(Range(5), 2), Finite(3)},
        {"BatchDrop", Batch(Range(5), 2, true), Finite(2)},
        {"BatchEven", Batch(Range(6), 2), Finite(3)},
        {"BatchLarge", Batch(Range(5), INT64_MAX), Finite(1)},
        {"BatchInfinite", Batch(Endless(), 2), Infinite()},
        {"BatchUnknown", Batch(Odd(), 2), Unknown()},
        {"BatchBound", BatchBound(Range(5)), Unknown()},
        {"BatchBoundEmpty", BatchBound(Empty()), Finite(0)},
        {"BatchBoundInfinite", BatchBound(Endless()), Infinite()},
        {"Padded", PaddedBatch(Range(5), 2), Finite(3)},
        {"PaddedDrop", PaddedBatch(Range(5), 2, {}, true), Finite(2)},
        {"PaddedInfinite", PaddedBatch(Endless(), 2), Infinite()},
        {"Unbatch", Unbatch(Batch(Range(6), 2, true)), Finite(6)},
        {"UnbatchDynamic", Unbatch(Batch(Range(6), 2)), Unknown()},
        {"UnbatchEmpty", Unbatch(Batch(Empty(), 2)), Finite(0)},
        {"UnbatchInfinite", Unbatch(Batch(Endless(), 2, true)), Infinite()},
        {"UnbatchNothing", Unbatch(OfSpec({0}, 4)), Finite(0)},
        {"UnbatchUnknown", Unbatch(Batch(Odd(), 2, true)), Unknown()},
        {"Rebatch", Rebatch(Batch(Range(6), 2, true), {4}), Finite(2)},
        {"RebatchDrop", Rebatch(Batch(Range(6), 2, true), {4}, true),
         Finite(1)},
        {"RebatchDynamic", Rebatch(Batch(Range(6), 2), {4}), Unknown()},
        {"RebatchCycle", Rebatch(Batch(Range(6), 2, true), {4, 1}), Unknown()},
        {"RebatchInfinite", Rebatch(Batch(Endless(), 2), {4}), Infinite()},
    }),
    kName);

INSTANTIATE_TEST_SUITE_P(
    Several, CardinalityTest,
    ::testing::ValuesIn(Cases{
        {"Zip", Zip({Range(5), Range(3)}), Finite(3)},
        {"ZipInfinite", Zip({Endless(), Range(3)}), Finite(3)},
        {"ZipAllInfinite", Zip({Endless(), Counter()}), Infinite()},
        {"ZipUnknown", Zip({Range(3), Odd()}), Unknown()},
        {"ZipUnknownFirst", Zip({Odd(), Range(3), Range(2)}), Unknown()},
        {"ZipUnknownInfinite", Zip({Endless(), Odd()}), Unknown()},
        {"ZipEmptyUnknown", Zip({Odd(), Empty()}), Finite(0)},
        {"Concatenate", Concatenate(Range(5), Range(3)), Finite(8)},
        {"ConcatenateInfinite", Concatenate(Range(5), Endless()), Infinite()},
        {"ConcatenateUnknown", Concatenate(Range(5), Odd()), Unknown()},
        {"ConcatenateBoth", Concatenate(Odd(), Endless()), Infinite()},
        {"ConcatenateOverflow", Concatenate(Range(INT64_MAX), Range(INT64_MAX)),
         Unknown()},
        {"FlatMap", FlatMap(Range(5), ToDataset(Range(3))), Finite(15)},
        {"FlatMapBound", FlatMap(Range(5), ToRange()), Unknown()},
        {"FlatMapNothing", FlatMap(Empty(), ToRange()), Finite(0)},
        {"FlatMapToNothing", FlatMap(Odd(), ToDataset(Empty())), Finite(0)},
        {"FlatMapInfinite", FlatMap(Range(5), ToDataset(Counter())),
         Infinite()},
        {"FlatMapUnknownInfinite", FlatMap(Odd(), ToDataset(Counter())),
         Unknown()},
        {"FlatMapOfInfinite", FlatMap(Endless(), ToDataset(Range(3))),
         Infinite()},
        {"FlatMapUnknown", FlatMap(Odd(), ToDataset(Range(3))), Unknown()},
        {"Interleave", Interleave(Range(5), ToDataset(Range(3))), Finite(15)},
        {"InterleaveBound", Interleave(Range(5), ToRange()), Unknown()},
    }),
    kName);

}  // namespace
}  // namespace penstock::plan_testing
