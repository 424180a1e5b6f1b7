// What the builder refuses of sources and of what moves rows, and what it says.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/plan/refuse_for_test.h"

namespace penstock::plan_testing {
namespace {

class RefuseRowsTest : public ::testing::TestWithParam<RefuseCase> {};

TEST_P(RefuseRowsTest, SaysWhy) { ExpectRefused(GetParam()); }

void SetRange(Node& n, Tensor start, Tensor stop, Tensor step) {
  *n.mutable_range()->mutable_start() = Constant(std::move(start));
  *n.mutable_range()->mutable_stop() = Constant(std::move(stop));
  *n.mutable_range()->mutable_step() = Constant(std::move(step));
}
Tensor Int(int64_t value) { return Scalar(value); }

const auto kName = [](const auto& info) { return info.param.name; };
using Cases = std::vector<RefuseCase>;

INSTANTIATE_TEST_SUITE_P(
    Sources, RefuseRowsTest,
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
        {"WindowOfNothing",
         {Range(3)},
         [](Node& n) {
           *n.mutable_window()->mutable_size() = Constant(int64_t{0});
         },
         "size must be at least 1; got 0"},
        {"BatchOfWindows",
         {Window(Range(3), 2)},
         [](Node& n) {
           *n.mutable_batch()->mutable_size() = Constant(int64_t{2});
         },
         "batch takes elements of tensors; got Dataset(int64())",
         true},
        {"NestedRowsOfNumbers",
         {},
         [](Node& n) {
           *n.mutable_nested_rows()->mutable_rows() = Constant(int64_t{2});
         },
         "the rows of a dataset must be a scalar string; got int64()",
         true},
        {"SampleWeights",
         {Range(3), Range(3)},
         [](Node& n) { n.mutable_sample_from_datasets()->add_weights(1); },
         "there must be one weight per dataset, 2; got 1"},
        {"SampleDTypes",
         {Range(3), Strings({"a"})},
         [](Node& n) { n.mutable_sample_from_datasets(); },
         "each dataset to sample from",
         true},
        {"ChooseByFloats",
         {FloatRange(0, 1, 1), Range(3)},
         [](Node& n) { n.mutable_choose_from_datasets(); },
         "choice_dataset must have elements int64(); got float64()",
         true},
        {"UniqueFloats",
         {FloatRange(0, 1, 1)},
         [](Node& n) { n.mutable_unique(); },
         "unique takes integers, bools and strings; got float64()",
         true},
        {"CardinalityOfNothing",
         {Range(3)},
         [](Node& n) { n.mutable_assert_cardinality(); },
         "cardinality must be given; got nothing"},
        {"PackScalars",
         {Range(3)},
         [](Node& n) { n.mutable_pack()->set_length(3); },
         "pack takes sequences of numbers",
         true},
        {"NoTokens",
         {Range(3)},
         [](Node& n) {
           *n.mutable_batch_by_tokens()->mutable_length() = Identity();
         },
         "max_tokens must be at least 1; got 0"},
        {"TokensOfNoWindow",
         {Range(3)},
         [](Node& n) {
           *n.mutable_batch_by_tokens()->mutable_length() = Identity();
           n.mutable_batch_by_tokens()->set_max_tokens(8);
           n.mutable_batch_by_tokens()->set_window(0);
         },
         "window must be"},
        {"SizesAndTokens",
         {Range(3)},
         [](Node& n) {
           plan::BucketBySequenceLength* op =
               n.mutable_bucket_by_sequence_length();
           *op->mutable_length() = Identity();
           op->set_max_tokens(8);
           op->add_batch_sizes(3);
         },
         "bucket_by_sequence_length takes either bucket_batch_sizes or "
         "max_tokens; got both"},
        {"NeitherSizesNorTokens",
         {Range(3)},
         [](Node& n) {
           plan::BucketBySequenceLength* op =
               n.mutable_bucket_by_sequence_length();
           *op->mutable_length() = Identity();
           op->add_boundaries(3);
         },
         "bucket_by_sequence_length takes either bucket_batch_sizes or "
         "max_tokens; got neither"},
        {"BoundaryOverTheBudget",
         {Range(3)},
         [](Node& n) {
           plan::BucketBySequenceLength* op =
               n.mutable_bucket_by_sequence_length();
           *op->mutable_length() = Identity();
           op->add_boundaries(10);
           op->set_max_tokens(8);
           op->set_pad_to_boundary(true);
         },
         "with pad_to_bucket_boundary, max_tokens must be at least the length "
         "that the last boundary pads to, 9; got 8"},
        {"SparseBatchRank",
         {Range(3)},
         [](Node& n) {
           *n.mutable_sparse_batch()->mutable_size() = Constant(int64_t{2});
           *n.mutable_sparse_batch()->mutable_row_shape() = ShapeOf({3});
         },
         "row_shape must have the rank of elements int64(); got (3,)"},
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
           *n.mutable_rows() = OneInt();
           n.mutable_rows()->set_rows(2);
         },
         "the chunk must have as many rows as are promised, 2; got 1"},
        {"RowsDType",
         {},
         [](Node& n) {
           *n.mutable_rows() = OneInt();
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
         "compression must be NONE, GZIP, ZLIB or ZSTD; got number 9"},
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
    Rows, RefuseRowsTest,
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
        {"RunAhead",
         {Range(1)},
         [](Node& n) {
           n.mutable_with_options()->mutable_options()->set_run_ahead(-1);
         },
         "run_ahead must be at least 0; got -1"},
    }),
    kName);

}  // namespace
}  // namespace penstock::plan_testing
