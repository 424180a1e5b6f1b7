#include "penstock/plan/plan_testing.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "penstock/data/encode.h"

namespace penstock::plan_testing {
namespace {

// One row of one int64.
plan::Rows StateOf(int64_t value) {
  const std::vector<int64_t> values = {value};
  Chunk chunk;
  chunk.rows = 1;
  chunk.columns = {MakeColumn<int64_t>(values)};
  return RowsOf(chunk, TensorOf(plan::INT64));
}

}  // namespace

plan::BuildContext TestContext() {
  static std::atomic<uint64_t> next{1};
  return {.random = [] { return next++; }};
}

absl::StatusOr<Plan> TryAppend(std::vector<Plan> inputs, Node node,
                               const std::vector<plan::TensorSpec>& bound) {
  return plan::Append(std::move(inputs), std::move(node), bound, TestContext());
}

Plan AppendOrDie(std::vector<Plan> inputs, Node node,
                 const std::vector<plan::TensorSpec>& bound) {
  absl::StatusOr<Plan> plan =
      TryAppend(std::move(inputs), std::move(node), bound);
  if (!plan.ok()) {
    std::fprintf(stderr, "%s\n", plan.status().ToString().c_str());
    std::abort();
  }
  return *std::move(plan);
}

plan::Rows RowsOf(const Chunk& chunk, ElementSpec spec) {
  // Through aligned memory: Encode() wants it, and leaves gaps as they are.
  Buffer bytes = Buffer::Allocate(EncodedSize(chunk));
  std::memset(bytes.MutableAs<char>(), 0, bytes.size());
  Encode(chunk, bytes.MutableAs<std::byte>());
  plan::Rows rows;
  rows.set_chunk(bytes.As<char>(), bytes.size());
  *rows.mutable_spec() = std::move(spec);
  rows.set_rows(chunk.rows);
  return rows;
}

Plan Range(int64_t stop) { return Range(0, stop); }

Plan Range(int64_t start, int64_t stop, int64_t step) {
  Node node;
  *node.mutable_range()->mutable_start() = Constant(start);
  *node.mutable_range()->mutable_stop() = Constant(stop);
  *node.mutable_range()->mutable_step() = Constant(step);
  return AppendOrDie({}, std::move(node));
}

Plan RangeTo(Value stop, const std::vector<plan::TensorSpec>& bound) {
  Node node;
  *node.mutable_range()->mutable_stop() = std::move(stop);
  return AppendOrDie({}, std::move(node), bound);
}

Plan FloatRange(double start, double stop, double step) {
  Node node;
  node.mutable_range()->set_dtype(plan::FLOAT64);
  *node.mutable_range()->mutable_start() = Constant(Scalar(start));
  *node.mutable_range()->mutable_stop() = Constant(Scalar(stop));
  *node.mutable_range()->mutable_step() = Constant(Scalar(step));
  return AppendOrDie({}, std::move(node));
}

Plan Counter(int64_t start, int64_t step) {
  Node node;
  *node.mutable_counter()->mutable_start() = Constant(start);
  *node.mutable_counter()->mutable_step() = Constant(step);
  return AppendOrDie({}, std::move(node));
}

Plan Random(std::optional<uint64_t> seed) {
  Node node;
  node.mutable_random();
  if (seed.has_value()) node.mutable_random()->set_seed(*seed);
  return AppendOrDie({}, std::move(node));
}

Plan Rows(const Chunk& chunk, ElementSpec spec) {
  Node node;
  *node.mutable_rows() = RowsOf(chunk, std::move(spec));
  return AppendOrDie({}, std::move(node));
}

Plan Ints(const std::vector<int64_t>& values) {
  Chunk chunk;
  chunk.rows = static_cast<int64_t>(values.size());
  chunk.columns = {MakeColumn<int64_t>(values)};
  return Rows(chunk, TensorOf(plan::INT64));
}

Plan Strings(const std::vector<std::string>& values) {
  const std::vector<std::string_view> views(values.begin(), values.end());
  Chunk chunk;
  chunk.rows = static_cast<int64_t>(values.size());
  chunk.columns = {MakeStringColumn(views)};
  return Rows(chunk, TensorOf(plan::STRING));
}

Plan Generator(ElementSpec spec) {
  Node node;
  node.mutable_generator()->set_capture("generator");
  *node.mutable_generator()->mutable_spec() = std::move(spec);
  return AppendOrDie({}, std::move(node));
}

Plan ListFiles(const std::string& pattern, bool shuffle,
               std::optional<uint64_t> seed) {
  Node node;
  plan::ListFiles* op = node.mutable_list_files();
  *op->mutable_patterns() = Constant(Text(pattern));
  op->set_shuffle(shuffle);
  op->set_reshuffle_each_iteration(shuffle);
  if (seed.has_value()) op->set_seed(*seed);
  return AppendOrDie({}, std::move(node));
}

Plan TextLines(const std::vector<std::string>& files) {
  Node node;
  *node.mutable_read_files()->mutable_files() = Constant(Texts(files));
  node.mutable_read_files()->mutable_text();
  return AppendOrDie({}, std::move(node));
}

Plan TfRecords(const std::vector<std::string>& files) {
  Node node;
  *node.mutable_read_files()->mutable_files() = Constant(Texts(files));
  node.mutable_read_files()->mutable_tf_record();
  return AppendOrDie({}, std::move(node));
}

Plan Zip(std::vector<Plan> inputs) {
  Node node;
  *node.mutable_zip()->mutable_structure() =
      TupleOf(std::vector<ElementSpec>(inputs.size(), TensorOf(plan::INT64)));
  return AppendOrDie(std::move(inputs), std::move(node));
}

Plan Concatenate(Plan first, Plan second) {
  Node node;
  node.mutable_concatenate();
  return AppendOrDie({std::move(first), std::move(second)}, std::move(node));
}

Plan Map(Plan input, Function function, std::optional<int64_t> parallelism) {
  Node node;
  *node.mutable_map()->mutable_function() = std::move(function);
  if (parallelism.has_value()) {
    node.mutable_map()->set_parallelism(*parallelism);
  }
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Filter(Plan input, Function predicate) {
  Node node;
  *node.mutable_filter()->mutable_predicate() = std::move(predicate);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan TakeWhile(Plan input, Function predicate) {
  Node node;
  *node.mutable_take_while()->mutable_predicate() = std::move(predicate);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan FlatMap(Plan input, Function function) {
  Node node;
  *node.mutable_flat_map()->mutable_function() = std::move(function);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Interleave(Plan input, Function function, int64_t cycle_length,
                int64_t block_length, std::optional<int64_t> parallelism) {
  Node node;
  plan::Interleave* op = node.mutable_interleave();
  *op->mutable_function() = std::move(function);
  op->set_cycle_length(cycle_length);
  op->set_block_length(block_length);
  if (parallelism.has_value()) op->set_parallelism(*parallelism);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Batch(Plan input, int64_t size, bool drop_remainder) {
  Node node;
  *node.mutable_batch()->mutable_size() = Constant(size);
  node.mutable_batch()->set_drop_remainder(drop_remainder);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan PaddedBatch(Plan input, int64_t size, const std::vector<Dims>& shapes,
                 bool drop_remainder, std::vector<Tensor> padding) {
  Node node;
  plan::PaddedBatch* op = node.mutable_padded_batch();
  *op->mutable_size() = Constant(size);
  op->set_drop_remainder(drop_remainder);
  for (const Dims& dims : shapes) *op->add_shapes() = ShapeOf(dims);
  for (Tensor& value : padding) *op->add_padding() = std::move(value);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Unbatch(Plan input) {
  Node node;
  node.mutable_unbatch();
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Rebatch(Plan input, std::vector<int64_t> sizes, bool drop_remainder) {
  Node node;
  *node.mutable_rebatch()->mutable_sizes() = {sizes.begin(), sizes.end()};
  node.mutable_rebatch()->set_drop_remainder(drop_remainder);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Shuffle(Plan input, std::optional<int64_t> window,
             std::optional<uint64_t> seed, bool reshuffle) {
  Node node;
  plan::Shuffle* op = node.mutable_shuffle();
  if (window.has_value()) *op->mutable_window() = Constant(*window);
  if (seed.has_value()) op->set_seed(*seed);
  op->set_reshuffle_each_iteration(reshuffle);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Repeat(Plan input, std::optional<int64_t> count) {
  Node node;
  node.mutable_repeat();
  if (count.has_value()) {
    *node.mutable_repeat()->mutable_count() = Constant(*count);
  }
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Take(Plan input, std::optional<int64_t> count) {
  Node node;
  node.mutable_take();
  if (count.has_value()) {
    *node.mutable_take()->mutable_count() = Constant(*count);
  }
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Skip(Plan input, std::optional<int64_t> count) {
  Node node;
  node.mutable_skip();
  if (count.has_value()) {
    *node.mutable_skip()->mutable_count() = Constant(*count);
  }
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Shard(Plan input, int64_t num_shards, int64_t index) {
  Node node;
  *node.mutable_shard()->mutable_num_shards() = Constant(num_shards);
  *node.mutable_shard()->mutable_index() = Constant(index);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Enumerate(Plan input, int64_t start) {
  Node node;
  *node.mutable_enumerate()->mutable_start() = Constant(start);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Prefetch(Plan input, std::optional<int64_t> buffer_size) {
  Node node;
  node.mutable_prefetch();
  if (buffer_size.has_value()) {
    node.mutable_prefetch()->set_buffer_size(*buffer_size);
  }
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Cache(Plan input) {
  Node node;
  node.mutable_cache();
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Scan(Plan input, int64_t initial_state, Function function) {
  Node node;
  *node.mutable_scan()->mutable_initial_state() = StateOf(initial_state);
  *node.mutable_scan()->mutable_function() = std::move(function);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Reduce(Plan input, int64_t initial_state, Function function) {
  Node node;
  *node.mutable_reduce()->mutable_initial_state() = StateOf(initial_state);
  *node.mutable_reduce()->mutable_function() = std::move(function);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan IgnoreErrors(Plan input) {
  Node node;
  node.mutable_ignore_errors();
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan WithOptions(Plan input, plan::Options options) {
  Node node;
  *node.mutable_with_options()->mutable_options() = std::move(options);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Window(Plan input, int64_t size, int64_t shift, int64_t stride,
            bool drop_remainder) {
  Node node;
  plan::Window* op = node.mutable_window();
  *op->mutable_size() = Constant(size);
  if (shift > 0) *op->mutable_shift() = Constant(shift);
  *op->mutable_stride() = Constant(stride);
  op->set_drop_remainder(drop_remainder);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan SampleFrom(std::vector<Plan> inputs, std::vector<double> weights,
                std::optional<uint64_t> seed, bool stop_on_empty) {
  Node node;
  plan::SampleFromDatasets* op = node.mutable_sample_from_datasets();
  *op->mutable_weights() = {weights.begin(), weights.end()};
  if (seed.has_value()) op->set_seed(*seed);
  op->set_stop_on_empty(stop_on_empty);
  return AppendOrDie(std::move(inputs), std::move(node));
}

Plan ChooseFrom(Plan choices, std::vector<Plan> inputs, bool stop_on_empty) {
  Node node;
  node.mutable_choose_from_datasets()->set_stop_on_empty(stop_on_empty);
  inputs.insert(inputs.begin(), std::move(choices));
  return AppendOrDie(std::move(inputs), std::move(node));
}

Plan RaggedBatch(Plan input, int64_t size, bool drop_remainder) {
  Node node;
  *node.mutable_ragged_batch()->mutable_size() = Constant(size);
  node.mutable_ragged_batch()->set_drop_remainder(drop_remainder);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan SparseBatch(Plan input, int64_t size, const Dims& row_shape) {
  Node node;
  *node.mutable_sparse_batch()->mutable_size() = Constant(size);
  *node.mutable_sparse_batch()->mutable_row_shape() = ShapeOf(row_shape);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Pack(Plan input, int64_t length, int64_t open_rows, bool split,
          bool drop_remainder) {
  Node node;
  plan::Pack* op = node.mutable_pack();
  op->set_length(length);
  op->set_open_rows(open_rows);
  op->set_split(split);
  op->set_drop_remainder(drop_remainder);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan Unique(Plan input) {
  Node node;
  node.mutable_unique();
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan AssertCardinality(Plan input, int64_t expected) {
  Node node;
  node.mutable_assert_cardinality()->mutable_expected()->set_finite(expected);
  return AppendOrDie({std::move(input)}, std::move(node));
}

Plan GroupByWindow(Plan input, Function key, int64_t window_size) {
  Node node;
  plan::GroupByWindow* op = node.mutable_group_by_window();
  *op->mutable_key() = std::move(key);
  *op->mutable_reduce() = ToBatches(window_size, 1);
  *op->mutable_window_size() = Constant(window_size);
  return AppendOrDie({std::move(input)}, std::move(node));
}

namespace {

Plan BoundRows() {
  Node node;
  *node.mutable_nested_rows()->mutable_rows() = Bound(0);
  *node.mutable_nested_rows()->mutable_spec() = TensorOf(plan::INT64);
  return AppendOrDie({}, std::move(node), {LeafOf(plan::STRING)});
}

}  // namespace

Function ToRows(uint32_t number) {
  FunctionBuilder f("to_rows");
  return f.ReturnDataset(BoundRows(), {f.Arg(number)});
}

Function ToBatches(int64_t size, uint32_t number) {
  FunctionBuilder f("to_batches");
  return f.ReturnDataset(Batch(BoundRows(), size), {f.Arg(number)});
}

Function ToRange() {
  FunctionBuilder f("to_range");
  const auto x = f.Arg(0);
  return f.ReturnDataset(RangeTo(Bound(0), {LeafOf(plan::INT64)}), {x});
}

Function ToDataset(Plan dataset) {
  FunctionBuilder f("to_dataset");
  return f.ReturnDataset(std::move(dataset), {});
}

}  // namespace penstock::plan_testing
