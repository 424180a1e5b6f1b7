// What the builder refuses, and what it says.
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/plan/builder.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::plan_testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct RefuseCase {
  std::string name;
  std::vector<Plan> inputs;
  std::function<void(Node&)> fill;
  std::string want;
  bool is_type_error = false;
};

class RefuseTest : public ::testing::TestWithParam<RefuseCase> {};

TEST_P(RefuseTest, SaysWhy) {
  const RefuseCase& c = GetParam();
  Node node;
  node.mutable_made_at()->set_file("train.py");
  node.mutable_made_at()->set_line(31);
  c.fill(node);
  const absl::Status status =
      TryAppend(c.inputs, node, {LeafOf(plan::FLOAT32, {2})}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(status.message());
  EXPECT_THAT(message, StartsWith(c.want));
  EXPECT_THAT(message, HasSubstr("\n  at node \""));
  EXPECT_THAT(message, HasSubstr("\", made at train.py:31"));
  EXPECT_EQ(status.GetPayload(plan::kTypeError).has_value(), c.is_type_error);
}

Plan Of(const Dims& dims, plan::DType dtype = plan::INT64) {
  return Generator(TensorOf(dtype, dims));
}
Plan OfUnknownRank() {
  ElementSpec spec = TensorOf(plan::INT64);
  spec.mutable_tensor()->mutable_shape()->set_unknown_rank(true);
  return Generator(spec);
}
void SetRange(Node& n, Tensor start, Tensor stop, Tensor step) {
  *n.mutable_range()->mutable_start() = Constant(std::move(start));
  *n.mutable_range()->mutable_stop() = Constant(std::move(stop));
  *n.mutable_range()->mutable_step() = Constant(std::move(step));
}
void SetState(plan::Rows* rows, int64_t value) {
  Chunk chunk;
  chunk.rows = 1;
  const std::vector<int64_t> values = {value};
  chunk.columns = {MakeColumn<int64_t>(values)};
  *rows = RowsOf(chunk, TensorOf(plan::INT64));
}
Tensor Int(int64_t value) { return Scalar(value); }

const auto kName = [](const auto& info) { return info.param.name; };
using Cases = std::vector<RefuseCase>;

INSTANTIATE_TEST_SUITE_P(
    Sources, RefuseTest,
    ::testing::ValuesIn(Cases{
        {"RangeStep",
         {},
         [](Node& n) { SetRange(n, Int(0), Int(5), Int(0)); },
         "step must not be 0; got 0"},
        {"RangeDType",
         {},
         [](Node& n) {
           SetRange(n, Int(0), Int(5), Int(1));
           n.mutable_range()->set_dtype(plan::STRING);
         },
         "dtype must be integer or floating; got STRING",
         true},
        {"RangeFloatStop",
         {},
         [](Node& n) { SetRange(n, Int(0), Scalar(1.5), Int(1)); },
         "stop must be a scalar integer; got float64()",
         true},
        {"RangeVector",
         {},
         [](Node& n) { SetRange(n, Int(0), Vector({1}), Int(1)); },
         "stop must be a scalar integer; got int64(1,)",
         true},
        {"RangeUncountable",
         {},
         [](Node& n) { SetRange(n, Int(INT64_MIN), Int(INT64_MAX), Int(1)); },
         "a range must have less than 2^63 elements"},
        {"RangeInfinite",
         {},
         [](Node& n) {
           SetRange(n, Int(0), Scalar(1.0 / 0.0), Int(1));
           n.mutable_range()->set_dtype(plan::FLOAT32);
         },
         "stop must be finite; got inf"},
        {"RangeNoStop",
         {},
         [](Node& n) { n.mutable_range(); },
         "stop must be given; got nothing"},
        {"BoundNumber",
         {},
         [](Node& n) { *n.mutable_range()->mutable_stop() = Bound(7); },
         "stop must be one of 1 bound values; got number 7"},
        {"BoundSpec",
         {},
         [](Node& n) { *n.mutable_range()->mutable_stop() = Bound(0); },
         "stop must be a scalar integer; got float32(2,)",
         true},
        {"SourceWithInput",
         {Range(1)},
         [](Node& n) { n.mutable_random(); },
         "random must have 0 inputs; got 1"},
        {"RowsWithout",
         {},
         [](Node& n) {
           *n.mutable_rows()->mutable_spec() = TensorOf(plan::INT64);
         },
         "rows must come from a chunk or a capture; got neither"},
        {"RowsNegative",
         {},
         [](Node& n) {
           *n.mutable_rows()->mutable_spec() = TensorOf(plan::INT64);
           n.mutable_rows()->set_rows(-1);
         },
         "rows must be at least 0; got -1"},
        {"RowsCount",
         {},
         [](Node& n) {
           SetState(n.mutable_rows(), 1);
           n.mutable_rows()->set_rows(2);
         },
         "the chunk must have as many rows as are promised, 2; got 1"},
        {"RowsDType",
         {},
         [](Node& n) {
           SetState(n.mutable_rows(), 1);
           *n.mutable_rows()->mutable_spec() = TensorOf(plan::FLOAT32);
         },
         "component 0: expected float32; got int64"},
        {"SlicesMismatch",
         {},
         [](Node& n) {
           *n.mutable_values()->add_values() = Constant(Vector({1, 2}));
           *n.mutable_values()->add_values() = Constant(Vector({1, 2, 3}));
           *n.mutable_values()->mutable_structure() =
               TupleOf({TensorOf(plan::INT64), TensorOf(plan::INT64)});
           n.mutable_values()->set_slices(true);
         },
         "from_tensor_slices must have components of one first dimension, 2; "
         "got 3 in component 1"},
        {"SlicesScalar",
         {},
         [](Node& n) {
           *n.mutable_values()->add_values() = Constant(1);
           *n.mutable_values()->mutable_structure() = TensorOf(plan::INT64);
           n.mutable_values()->set_slices(true);
         },
         "from_tensor_slices must have components of at least one dimension; "
         "got int64() as component 0"},
        {"Patterns",
         {},
         [](Node& n) {
           *n.mutable_list_files()->mutable_patterns() = Constant(3);
         },
         "file_pattern must be a string or a vector of strings; got int64()",
         true},
        {"NoFormat",
         {},
         [](Node& n) {
           *n.mutable_read_files()->mutable_files() = Constant(Text("a"));
         },
         "files must be read as text"},
        {"Compression",
         {},
         [](Node& n) {
           *n.mutable_read_files()->mutable_files() = Constant(Text("a"));
           n.mutable_read_files()->set_compression(
               static_cast<plan::ReadFiles::Compression>(9));
         },
         "compression must be NONE, GZIP or ZLIB; got number 9"},
        {"RecordBytes",
         {},
         [](Node& n) {
           *n.mutable_read_files()->mutable_files() = Constant(Text("a"));
           *n.mutable_read_files()
                ->mutable_fixed_length()
                ->mutable_record_bytes() = Constant(0);
         },
         "record_bytes must be at least 1; got 0"},
        {"Nothing",
         {Range(1)},
         [](Node&) {},
         "a node must have one of the known operators; got none"},
    }),
    kName);

INSTANTIATE_TEST_SUITE_P(
    Rows, RefuseTest,
    ::testing::ValuesIn(Cases{
        {"NoInput",
         {},
         [](Node& n) { n.mutable_cache(); },
         "cache must have 1 input; got 0"},
        {"TwoInputs",
         {Range(1), Range(1)},
         [](Node& n) { n.mutable_cache(); },
         "cache must have 1 input; got 2"},
        {"ZipNothing",
         {},
         [](Node& n) { n.mutable_zip(); },
         "zip must have at least 1 input; got 0"},
        {"ZipTooMany",
         {Range(1), Range(1)},
         [](Node& n) {
           *n.mutable_zip()->mutable_structure() = TensorOf(plan::INT64);
         },
         "the structure of zip must hold each of its 2 datasets once; got 1"},
        {"ConcatenateStructure",
         {Range(1), Enumerate(Range(1))},
         [](Node& n) { n.mutable_concatenate(); },
         "the dataset to concatenate must have the structure and dtypes of "
         "int64(); got (int64(), int64())",
         true},
        {"ConcatenateDType",
         {Range(1), Strings({"a"})},
         [](Node& n) { n.mutable_concatenate(); },
         "the dataset to concatenate must have the structure and dtypes of "
         "int64(); got string()",
         true},
        {"TakeNegative",
         {Range(1)},
         [](Node& n) { *n.mutable_take()->mutable_count() = Constant(-5); },
         "count must be at least 0, or left out for all; got -5"},
        {"SkipNegative",
         {Range(1)},
         [](Node& n) { *n.mutable_skip()->mutable_count() = Constant(-5); },
         "count must be at least 0, or left out to skip everything; got -5"},
        {"RepeatNegative",
         {Range(1)},
         [](Node& n) { *n.mutable_repeat()->mutable_count() = Constant(-1); },
         "count must be at least 0, or left out to repeat for ever; got -1"},
        {"RepeatFloat",
         {Range(1)},
         [](Node& n) {
           *n.mutable_repeat()->mutable_count() = Constant(Scalar(2.0));
         },
         "count must be a scalar integer; got float64()",
         true},
        {"ShuffleWindow",
         {Range(1)},
         [](Node& n) { *n.mutable_shuffle()->mutable_window() = Constant(0); },
         "buffer_size must be at least 1; got 0"},
        {"ShardIndex",
         {Range(1)},
         [](Node& n) {
           *n.mutable_shard()->mutable_num_shards() = Constant(3);
           *n.mutable_shard()->mutable_index() = Constant(3);
         },
         "index must be less than num_shards, 3; got 3"},
        {"ShardNegative",
         {Range(1)},
         [](Node& n) {
           *n.mutable_shard()->mutable_num_shards() = Constant(3);
           *n.mutable_shard()->mutable_index() = Constant(-1);
         },
         "index must be at least 0; got -1"},
        {"ShardNone",
         {Range(1)},
         [](Node& n) {
           *n.mutable_shard()->mutable_num_shards() = Constant(0);
           *n.mutable_shard()->mutable_index() = Constant(0);
         },
         "num_shards must be at least 1; got 0"},
        {"Prefetch",
         {Range(1)},
         [](Node& n) { n.mutable_prefetch()->set_buffer_size(-2); },
         "buffer_size must be at least 0, or left out to be chosen; got -2"},
        {"CpuBudget",
         {Range(1)},
         [](Node& n) {
           n.mutable_with_options()->mutable_options()->set_cpu_budget(0);
         },
         "cpu_budget must be at least 1; got 0"},
    }),
    kName);

INSTANTIATE_TEST_SUITE_P(
    Batches, RefuseTest,
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
    Functions, RefuseTest,
    ::testing::ValuesIn(Cases{
        {"MapDataset",
         {Range(5)},
         [](Node& n) { *n.mutable_map()->mutable_function() = ToRange(); },
         "the function of map must return tensors; got a Dataset",
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
           SetState(n.mutable_scan()->mutable_initial_state(), 0);
           *n.mutable_scan()->mutable_function() = Sum();
         },
         "the function of scan must return a tuple of the new state and the "
         "output; got int64()",
         true},
        {"ScanState",
         {FloatRange(0, 1, 0.5)},
         [](Node& n) {
           SetState(n.mutable_scan()->mutable_initial_state(), 0);
           *n.mutable_scan()->mutable_function() = RunningSum();
         },
         "the new state of the function of scan must have the structure and "
         "dtypes of int64(); got float64()",
         true},
        {"ReduceState",
         {Range(5)},
         [](Node& n) {
           SetState(n.mutable_reduce()->mutable_initial_state(), 0);
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
