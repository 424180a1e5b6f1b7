// What the builder refuses of batches and functions, and what it says.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/plan/refuse_for_test.h"

namespace penstock::plan_testing {
namespace {

class RefuseValuesTest : public ::testing::TestWithParam<RefuseCase> {};

TEST_P(RefuseValuesTest, SaysWhy) { ExpectRefused(GetParam()); }

Plan Of(const Dims& dims, plan::DType dtype = plan::INT64) {
  return Generator(TensorOf(dtype, dims));
}
Plan OfUnknownRank() {
  ElementSpec spec = TensorOf(plan::INT64);
  spec.mutable_tensor()->mutable_shape()->set_unknown_rank(true);
  return Generator(spec);
}
const auto kName = [](const auto& info) { return info.param.name; };
using Cases = std::vector<RefuseCase>;

INSTANTIATE_TEST_SUITE_P(
    Batches, RefuseValuesTest,
    ::testing::ValuesIn(Cases{
        {"Batch",
         {Range(5)},
         [](Node& n) { *n.mutable_batch()->mutable_size() = Constant(0); },
         "batch_size must be at least 1; got 0"},
        {"BatchParallelism",
         {Range(5)},
         [](Node& n) {
           *n.mutable_batch()->mutable_size() = Constant(1);
           n.mutable_batch()->set_parallelism(0);
         },
         "num_parallel_calls must be at least 1; got 0"},
        {"BatchRank",
         {Of(Dims(8, 1))},
         [](Node& n) { *n.mutable_batch()->mutable_size() = Constant(1); },
         "a component must have at most 8 dimensions; got (None, 1, 1,"},
        {"BatchSize",
         {Of({1 << 20, 1 << 20})},
         [](Node& n) {
           *n.mutable_batch()->mutable_size() = Constant(1 << 20);
           n.mutable_batch()->set_drop_remainder(true);
         },
         "a component must take less than 2^47 bytes; got shape"},
        {"PaddedRank",
         {Of({2})},
         [](Node& n) {
           *n.mutable_padded_batch()->mutable_size() = Constant(2);
           *n.mutable_padded_batch()->add_shapes() = ShapeOf({2, 2});
         },
         "the padded shape of component 0 must have the rank of (2,); got "
         "(2, 2)"},
        {"PaddedSmaller",
         {Of({5})},
         [](Node& n) {
           *n.mutable_padded_batch()->mutable_size() = Constant(2);
           *n.mutable_padded_batch()->add_shapes() = ShapeOf({4});
         },
         "the padded shape of component 0 must be at least its shape (5,); "
         "got (4,)"},
        {"PaddedUnknownRank",
         {OfUnknownRank()},
         [](Node& n) {
           *n.mutable_padded_batch()->mutable_size() = Constant(2);
         },
         "padded_shapes must say the rank of component 0; got an unknown rank"},
        {"PaddedShapes",
         {Zip({Range(1), Range(1)})},
         [](Node& n) {
           *n.mutable_padded_batch()->mutable_size() = Constant(2);
           *n.mutable_padded_batch()->add_shapes() = ShapeOf({});
         },
         "padded_shapes must have one entry per component, 2; got 1"},
        {"PaddingDType",
         {Range(5)},
         [](Node& n) {
           *n.mutable_padded_batch()->mutable_size() = Constant(2);
           *n.mutable_padded_batch()->add_padding() = Scalar(0.5);
         },
         "the padding value of component 0 must be int64(); got float64()",
         true},
        {"PaddingVector",
         {Range(5)},
         [](Node& n) {
           *n.mutable_padded_batch()->mutable_size() = Constant(2);
           *n.mutable_padded_batch()->add_padding() = Vector({1});
         },
         "the padding value of component 0 must be int64(); got int64(1,)",
         true},
        {"UnbatchScalar",
         {Range(5)},
         [](Node& n) { n.mutable_unbatch(); },
         "unbatch must have components of at least one dimension; got int64()"},
        {"UnbatchMismatch",
         {Zip({Of({2}), Of({3})})},
         [](Node& n) { n.mutable_unbatch(); },
         "unbatch must have components of one first dimension, 2; got 3"},
        {"UnbatchNothing",
         {Generator(TupleOf({}))},
         [](Node& n) { n.mutable_unbatch(); },
         "unbatch must have at least one component; got none"},
        {"RebatchEmpty",
         {Of({2})},
         [](Node& n) { n.mutable_rebatch(); },
         "batch_size must have at least one positive entry; got an empty"},
        {"RebatchZeros",
         {Of({2})},
         [](Node& n) { n.mutable_rebatch()->add_sizes(0); },
         "batch_size must have at least one positive entry; got zeros"},
        {"RebatchNegative",
         {Of({2})},
         [](Node& n) {
           n.mutable_rebatch()->add_sizes(2);
           n.mutable_rebatch()->add_sizes(-2);
         },
         "batch_size must be at least 0; got -2"},
    }),
    kName);

INSTANTIATE_TEST_SUITE_P(
    Functions, RefuseValuesTest,
    ::testing::ValuesIn(Cases{
        {"FilterDataset",
         {Range(5)},
         [](Node& n) { *n.mutable_filter()->mutable_predicate() = ToRange(); },
         "the predicate of filter must return tensors; got a Dataset",
         true},
        {"MapParallelism",
         {Range(5)},
         [](Node& n) {
           *n.mutable_map()->mutable_function() = Identity();
           n.mutable_map()->set_parallelism(0);
         },
         "num_parallel_calls must be at least 1; got 0"},
        {"MapOutputs",
         {Range(5)},
         [](Node& n) {
           *n.mutable_map()->mutable_function() = Identity();
           n.mutable_map()->mutable_function()->add_outputs(0);
         },
         "the function of map must have one output per component of what it "
         "returns, 1; got 2"},
        {"FilterInt",
         {Range(5)},
         [](Node& n) { *n.mutable_filter()->mutable_predicate() = Mod(2); },
         "the predicate of filter must return a scalar bool; got int64()",
         true},
        {"FilterVector",
         {Of({3})},
         [](Node& n) {
           *n.mutable_filter()->mutable_predicate() = IsLessThan(2);
         },
         "the predicate of filter must return a scalar bool; got bool(3,)",
         true},
        {"TakeWhilePair",
         {Range(5)},
         [](Node& n) { *n.mutable_take_while()->mutable_predicate() = Pair(); },
         "the predicate of take_while must return a scalar bool; got (int64(), "
         "int64())",
         true},
        {"FlatMapTensor",
         {Range(5)},
         [](Node& n) {
           *n.mutable_flat_map()->mutable_function() = Identity();
         },
         "the function of flat_map must return a Dataset; got int64()",
         true},
        {"FlatMapUnbound",
         {Range(5)},
         [](Node& n) {
           *n.mutable_flat_map()->mutable_function() = ToRange();
           n.mutable_flat_map()->mutable_function()->clear_outputs();
         },
         "the function must give its dataset 1 bound values; got 0"},
        {"FlatMapBoundDType",
         {Strings({"a"})},
         [](Node& n) { *n.mutable_flat_map()->mutable_function() = ToRange(); },
         "bound value 0 must be int64(); got string()",
         true},
        {"InterleaveCycle",
         {Range(5)},
         [](Node& n) {
           *n.mutable_interleave()->mutable_function() = ToRange();
           n.mutable_interleave()->set_cycle_length(-1);
         },
         "cycle_length must be at least 1 and at most 1048576; got -1"},
        {"InterleaveBlock",
         {Range(5)},
         [](Node& n) {
           *n.mutable_interleave()->mutable_function() = ToRange();
           n.mutable_interleave()->set_block_length((1 << 20) + 1);
         },
         "block_length must be at least 1 and at most 1048576; got 1048577"},
        {"ScanReturn",
         {Range(5)},
         [](Node& n) {
           *n.mutable_scan()->mutable_initial_state() = OneInt();
           *n.mutable_scan()->mutable_function() = Sum();
         },
         "the function of scan must return a tuple of the new state and the "
         "output; got int64()",
         true},
        {"ScanState",
         {FloatRange(0, 1, 0.5)},
         [](Node& n) {
           *n.mutable_scan()->mutable_initial_state() = OneInt();
           *n.mutable_scan()->mutable_function() = RunningSum();
         },
         "the new state of the function of scan must have the structure and "
         "dtypes of int64(); got float64()",
         true},
        {"ReduceState",
         {Range(5)},
         [](Node& n) {
           *n.mutable_reduce()->mutable_initial_state() = OneInt();
           *n.mutable_reduce()->mutable_function() = Pair();
         },
         "the new state of the function of reduce must have the structure and "
         "dtypes of int64(); got (int64(), int64())",
         true},
        {"ReduceNoState",
         {Range(5)},
         [](Node& n) {
           *n.mutable_reduce()->mutable_initial_state() =
               Ints({1, 2}).nodes(0).rows();
           *n.mutable_reduce()->mutable_function() = Sum();
         },
         "the initial state must have exactly one row; got 2"},
    }),
    kName);

}  // namespace
}  // namespace penstock::plan_testing
