// A small language for tests: plans and functions in one line each.
//
//   Plan plan = Batch(Map(Range(5), AddConstant(1)), 2);
//
// Plans are made by the builder (plan::Append), so a test's plan is a user's.
// A plan that the builder refuses ends the test with the builder's message;
// tests of refusals use TryAppend() with a node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/chunk.h"
#include "penstock/data/spec.h"
#include "penstock/plan.pb.h"
#include "penstock/plan/builder.h"
#include "penstock/plan/function_testing.h"

namespace penstock::plan_testing {

using plan::Node;

// Instance ids 1, 2, 3, … over the whole process.
plan::BuildContext TestContext();

absl::StatusOr<Plan> TryAppend(std::vector<Plan> inputs, Node node,
                               const std::vector<plan::TensorSpec>& bound = {});
Plan AppendOrDie(std::vector<Plan> inputs, Node node,
                 const std::vector<plan::TensorSpec>& bound = {});

// Sources.
Plan Range(int64_t stop);
Plan Range(int64_t start, int64_t stop, int64_t step = 1);
Plan RangeTo(Value stop, const std::vector<plan::TensorSpec>& bound);
Plan FloatRange(double start, double stop, double step);
Plan Counter(int64_t start = 0, int64_t step = 1);
Plan Random(std::optional<uint64_t> seed = {});
// Rows that the plan carries: `chunk` as elements of `spec`.
plan::Rows RowsOf(const Chunk& chunk, ElementSpec spec);
Plan Rows(const Chunk& chunk, ElementSpec spec);
Plan Ints(const std::vector<int64_t>& values);
Plan Strings(const std::vector<std::string>& values);
// Of any spec and unknown cardinality: for what only looks at specs.
Plan Generator(ElementSpec spec);
Plan ListFiles(const std::string& pattern, bool shuffle = false,
               std::optional<uint64_t> seed = {});
Plan TextLines(const std::vector<std::string>& files);
Plan TfRecords(const std::vector<std::string>& files);

// Transformations. Unset counts mean what they mean in the plan.
Plan Zip(std::vector<Plan> inputs);  // to a tuple
Plan Concatenate(Plan first, Plan second);
Plan Map(Plan input, Function function,
         std::optional<int64_t> parallelism = {});
Plan Filter(Plan input, Function predicate);
Plan TakeWhile(Plan input, Function predicate);
Plan FlatMap(Plan input, Function function);
Plan Interleave(Plan input, Function function, int64_t cycle_length = 0,
                int64_t block_length = 0,
                std::optional<int64_t> parallelism = {});
Plan Batch(Plan input, int64_t size, bool drop_remainder = false);
// Without shapes, each component's own; without padding, zeros.
Plan PaddedBatch(Plan input, int64_t size, const std::vector<Dims>& shapes = {},
                 bool drop_remainder = false, std::vector<Tensor> padding = {});
Plan Unbatch(Plan input);
Plan Rebatch(Plan input, std::vector<int64_t> sizes,
             bool drop_remainder = false);
Plan Shuffle(Plan input, std::optional<int64_t> window,
             std::optional<uint64_t> seed = {}, bool reshuffle = true);
Plan Repeat(Plan input, std::optional<int64_t> count = {});
Plan Take(Plan input, std::optional<int64_t> count);
Plan Skip(Plan input, std::optional<int64_t> count);
Plan Shard(Plan input, int64_t num_shards, int64_t index);
Plan Enumerate(Plan input, int64_t start = 0);
Plan Prefetch(Plan input, std::optional<int64_t> buffer_size = {});
Plan Cache(Plan input);
// The state is one int64.
Plan Scan(Plan input, int64_t initial_state, Function function);
Plan Reduce(Plan input, int64_t initial_state, Function function);
Plan IgnoreErrors(Plan input);
Plan Window(Plan input, int64_t size, int64_t shift = 0, int64_t stride = 1,
            bool drop_remainder = false);
Plan SampleFrom(std::vector<Plan> inputs, std::vector<double> weights = {},
                std::optional<uint64_t> seed = {}, bool stop_on_empty = false);
Plan ChooseFrom(Plan choices, std::vector<Plan> inputs,
                bool stop_on_empty = false);
Plan Unique(Plan input);
Plan RaggedBatch(Plan input, int64_t size, bool drop_remainder = false);
Plan SparseBatch(Plan input, int64_t size, const Dims& row_shape);
Plan Pack(Plan input, int64_t length, int64_t open_rows = 0, bool split = false,
          bool drop_remainder = false);
Plan AssertCardinality(Plan input, int64_t expected);
// By the number's remainder; each window becomes one batch.
Plan GroupByWindow(Plan input, Function key, int64_t window_size);
Plan WithOptions(Plan input, plan::Options options);

// Functions that return a dataset.
Function ToRange();                // x -> Dataset.range(x)
Function ToDataset(Plan dataset);  // x -> always this
// (…, rows) -> the rows of a dataset of numbers, of argument `number`.
Function ToRows(uint32_t number = 0);
// The same in batches.
Function ToBatches(int64_t size, uint32_t number = 0);

}  // namespace penstock::plan_testing
