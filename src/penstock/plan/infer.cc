#include "penstock/plan/infer.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/print.h"

namespace penstock::plan {
namespace {

struct Arity {
  size_t least = 1;
  size_t most = 1;
};

Arity ArityOf(const Node& node) {
  switch (node.op_case()) {
    case Node::kRange:
    case Node::kCounter:
    case Node::kRandom:
    case Node::kRows:
    case Node::kValues:
    case Node::kGenerator:
    case Node::kListFiles:
    case Node::kReadFiles:
    case Node::kNestedRows:
    case Node::kReceived:
      return {0, 0};
    case Node::kZip:
      return {1, std::numeric_limits<size_t>::max()};
    case Node::kSampleFromDatasets:
      return {1, std::numeric_limits<size_t>::max()};
    case Node::kChooseFromDatasets:
      return {2, std::numeric_limits<size_t>::max()};
    case Node::kConcatenate:
      return {2, 2};
    case Node::OP_NOT_SET:  // refused for that, whatever its inputs
      return {0, std::numeric_limits<size_t>::max()};
    default:
      return {1, 1};
  }
}

absl::Status CheckArity(const Node& node, size_t inputs) {
  const Arity arity = ArityOf(node);
  if (inputs >= arity.least && inputs <= arity.most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      OpName(node), " must have ", arity.least == arity.most ? "" : "at least ",
      arity.least, arity.least == 1 ? " input; got " : " inputs; got ",
      inputs));
}

infer::Result Dispatch(const Node& node, const Place& place) {
  switch (node.op_case()) {
    case Node::kRange:
      return infer::Of(node.range(), place);
    case Node::kCounter:
      return infer::Of(node.counter(), place);
    case Node::kRandom:
      return infer::Of(node.random(), place);
    case Node::kRows:
      return infer::Of(node.rows(), place);
    case Node::kValues:
      return infer::Of(node.values(), place);
    case Node::kGenerator:
      return infer::Of(node.generator(), place);
    case Node::kListFiles:
      return infer::Of(node.list_files(), place);
    case Node::kReadFiles:
      return infer::Of(node.read_files(), place);
    case Node::kZip:
      return infer::Of(node.zip(), place);
    case Node::kConcatenate:
      return infer::Of(node.concatenate(), place);
    case Node::kMap:
      return infer::Of(node.map(), place);
    case Node::kFilter:
      return infer::Of(node.filter(), place);
    case Node::kFlatMap:
      return infer::Of(node.flat_map(), place);
    case Node::kInterleave:
      return infer::Of(node.interleave(), place);
    case Node::kBatch:
      return infer::Of(node.batch(), place);
    case Node::kPaddedBatch:
      return infer::Of(node.padded_batch(), place);
    case Node::kUnbatch:
      return infer::Of(node.unbatch(), place);
    case Node::kRebatch:
      return infer::Of(node.rebatch(), place);
    case Node::kShuffle:
      return infer::Of(node.shuffle(), place);
    case Node::kRepeat:
      return infer::Of(node.repeat(), place);
    case Node::kTake:
      return infer::Of(node.take(), place);
    case Node::kSkip:
      return infer::Of(node.skip(), place);
    case Node::kTakeWhile:
      return infer::Of(node.take_while(), place);
    case Node::kShard:
      return infer::Of(node.shard(), place);
    case Node::kEnumerate:
      return infer::Of(node.enumerate(), place);
    case Node::kPrefetch:
      return infer::Of(node.prefetch(), place);
    case Node::kCache:
      return infer::Of(node.cache(), place);
    case Node::kScan:
      return infer::Of(node.scan(), place);
    case Node::kReduce:
      return infer::Of(node.reduce(), place);
    case Node::kIgnoreErrors:
      return infer::Of(node.ignore_errors(), place);
    case Node::kWithOptions:
      return infer::Of(node.with_options(), place);
    case Node::kNestedRows:
      return infer::Of(node.nested_rows(), place);
    case Node::kWindow:
      return infer::Of(node.window(), place);
    case Node::kGroupByWindow:
      return infer::Of(node.group_by_window(), place);
    case Node::kBucketBySequenceLength:
      return infer::Of(node.bucket_by_sequence_length(), place);
    case Node::kSampleFromDatasets:
      return infer::Of(node.sample_from_datasets(), place);
    case Node::kChooseFromDatasets:
      return infer::Of(node.choose_from_datasets(), place);
    case Node::kUnique:
      return infer::Of(node.unique(), place);
    case Node::kAssertCardinality:
      return infer::Of(node.assert_cardinality(), place);
    case Node::kRaggedBatch:
      return infer::Of(node.ragged_batch(), place);
    case Node::kSparseBatch:
      return infer::Of(node.sparse_batch(), place);
    case Node::kPack:
      return infer::Of(node.pack(), place);
    case Node::kBatchByTokens:
      return infer::Of(node.batch_by_tokens(), place);
    case Node::kReceived:
      return infer::Of(node.received(), place);
    case Node::OP_NOT_SET:
      return absl::InvalidArgumentError(
          "a node must have one of the known operators; got none");
  }
  return absl::InternalError("not an operator");
}

}  // namespace

absl::StatusOr<penstock::ElementSpec> InferOutput(const Node& node,
                                                  const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(CheckArity(node, place.inputs.size()));
  PENSTOCK_ASSIGN_OR_RETURN(penstock::ElementSpec output,
                            Dispatch(node, place));
  PENSTOCK_RETURN_IF_ERROR(CheckSpec(output));
  return output;
}

bool NeedsInstance(const Node& node) {
  switch (node.op_case()) {
    case Node::kCache:
    case Node::kShuffle:
    case Node::kRandom:
    case Node::kSampleFromDatasets:
      return true;
    case Node::kListFiles:
      return node.list_files().shuffle();
    case Node::kReceived:
      return node.received().has_distribution();
    default: {
      const std::vector<const Function*> functions = FunctionsOf(node);
      return std::any_of(functions.begin(), functions.end(),
                         [](const Function* each) { return IsRandom(*each); });
    }
  }
}

std::vector<const Function*> FunctionsOf(const Node& node) {
  switch (node.op_case()) {
    case Node::kMap:
      return {&node.map().function()};
    case Node::kFilter:
      return {&node.filter().predicate()};
    case Node::kTakeWhile:
      return {&node.take_while().predicate()};
    case Node::kFlatMap:
      return {&node.flat_map().function()};
    case Node::kInterleave:
      return {&node.interleave().function()};
    case Node::kScan:
      return {&node.scan().function()};
    case Node::kReduce:
      return {&node.reduce().function()};
    case Node::kGroupByWindow: {
      const GroupByWindow& op = node.group_by_window();
      return {&op.key(), &op.reduce(), &op.window_size_function()};
    }
    case Node::kBucketBySequenceLength:
      return {&node.bucket_by_sequence_length().length()};
    case Node::kBatchByTokens:
      return {&node.batch_by_tokens().length()};
    default:
      return {};
  }
}

const Function* DatasetFunctionOf(const Node& node) {
  switch (node.op_case()) {
    case Node::kMap:
      return node.map().function().has_dataset() ? &node.map().function()
                                                 : nullptr;
    case Node::kFlatMap:
      return &node.flat_map().function();
    case Node::kInterleave:
      return &node.interleave().function();
    case Node::kGroupByWindow:
      return &node.group_by_window().reduce();
    default:
      return nullptr;
  }
}

}  // namespace penstock::plan
