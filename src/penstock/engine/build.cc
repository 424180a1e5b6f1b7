#include "penstock/engine/build.h"

#include "penstock/engine/ops/assert_cardinality.h"
#include "penstock/engine/ops/batch.h"
#include "penstock/engine/ops/batch_by_tokens.h"
#include "penstock/engine/ops/cache.h"
#include "penstock/engine/ops/choose.h"
#include "penstock/engine/ops/concatenate.h"
#include "penstock/engine/ops/enumerate.h"
#include "penstock/engine/ops/file_cache.h"
#include "penstock/engine/ops/filter.h"
#include "penstock/engine/ops/generator.h"
#include "penstock/engine/ops/grouping.h"
#include "penstock/engine/ops/ignore_errors.h"
#include "penstock/engine/ops/interleave.h"
#include "penstock/engine/ops/list_files.h"
#include "penstock/engine/ops/map.h"
#include "penstock/engine/ops/pack.h"
#include "penstock/engine/ops/prefetch.h"
#include "penstock/engine/ops/random.h"
#include "penstock/engine/ops/range.h"
#include "penstock/engine/ops/read_files.h"
#include "penstock/engine/ops/received.h"
#include "penstock/engine/ops/repeat.h"
#include "penstock/engine/ops/rows.h"
#include "penstock/engine/ops/scan.h"
#include "penstock/engine/ops/shard.h"
#include "penstock/engine/ops/shuffle.h"
#include "penstock/engine/ops/take.h"
#include "penstock/engine/ops/unbatch.h"
#include "penstock/engine/ops/unique.h"
#include "penstock/engine/ops/window.h"
#include "penstock/engine/ops/zip.h"

namespace penstock::engine {

OperatorOr BuildOperator(const plan::Node& node,
                         std::vector<OperatorPtr> inputs,
                         std::optional<int64_t> input_rows,
                         OpContext& context) {
  OperatorPtr in = inputs.empty() ? nullptr : inputs[0];
  switch (node.op_case()) {
    case plan::Node::kRange:
      return MakeRange(node.range(), context);
    case plan::Node::kCounter:
      return MakeCounter(node.counter(), context);
    case plan::Node::kRandom:
      return MakeRandom(node.random(), context);
    case plan::Node::kRows:
      return MakeRows(node.rows(), context);
    case plan::Node::kValues:
      return MakeValues(node.values(), context);
    case plan::Node::kGenerator:
      return MakeGenerator(node.generator(), context);
    case plan::Node::kListFiles:
      return MakeListFiles(node.list_files(), context);
    case plan::Node::kReadFiles:
      return MakeReadFiles(node.read_files(), context);
    case plan::Node::kZip:
      return MakeZip(std::move(inputs), context);
    case plan::Node::kConcatenate:
      return MakeConcatenate(std::move(inputs), context);
    case plan::Node::kMap:
      return MakeMap(node.map(), in, context);
    case plan::Node::kFilter:
      return MakeFilter(node.filter(), in, context);
    case plan::Node::kFlatMap:
      return MakeFlatMap(node.flat_map(), in, context);
    case plan::Node::kInterleave:
      return MakeInterleave(node.interleave(), in, context);
    case plan::Node::kBatch:
      return MakeBatch(node.batch(), in, context);
    case plan::Node::kPaddedBatch:
      return MakePaddedBatch(node.padded_batch(), in, context);
    case plan::Node::kUnbatch:
      return MakeUnbatch(in, context);
    case plan::Node::kRebatch:
      return MakeRebatch(node.rebatch(), in, context);
    case plan::Node::kShuffle:
      return MakeShuffle(node.shuffle(), in, context);
    case plan::Node::kRepeat:
      return MakeRepeat(node.repeat(), in, context);
    case plan::Node::kTake:
      return MakeTake(node.take(), in, context);
    case plan::Node::kSkip:
      return MakeSkip(node.skip(), in, context);
    case plan::Node::kTakeWhile:
      return MakeTakeWhile(node.take_while(), in, context);
    case plan::Node::kShard:
      return MakeShard(node.shard(), in, context);
    case plan::Node::kEnumerate:
      return MakeEnumerate(node.enumerate(), in, context);
    case plan::Node::kPrefetch:
      return MakePrefetch(node.prefetch(), in, context);
    case plan::Node::kCache:
      if (!node.cache().filename().empty()) {
        return MakeFileCache(node.cache(), input_rows, in, context);
      }
      return MakeCache(input_rows, in, context);
    case plan::Node::kScan:
      return MakeScan(node.scan(), in, context);
    case plan::Node::kReduce:
      return MakeReduce(node.reduce(), in, context);
    case plan::Node::kIgnoreErrors:
      return MakeIgnoreErrors(node.ignore_errors(), in, context);
    case plan::Node::kWithOptions:
      return in;  // the pipeline reads them
    case plan::Node::kNestedRows:
      return MakeNestedRows(node.nested_rows(), context);
    case plan::Node::kWindow:
      return MakeWindow(node.window(), in, context);
    case plan::Node::kGroupByWindow:
      return MakeGroupByWindow(node.group_by_window(), in, context);
    case plan::Node::kBucketBySequenceLength:
      return MakeBucketBySequenceLength(node.bucket_by_sequence_length(), in,
                                        context);
    case plan::Node::kSampleFromDatasets:
      return MakeSample(node.sample_from_datasets(), std::move(inputs),
                        context);
    case plan::Node::kChooseFromDatasets:
      return MakeChoose(node.choose_from_datasets(), std::move(inputs),
                        context);
    case plan::Node::kUnique:
      return MakeUnique(in, context);
    case plan::Node::kAssertCardinality:
      return MakeAssertCardinality(node.assert_cardinality(), in, context);
    case plan::Node::kRaggedBatch:
      return MakeRaggedBatch(node.ragged_batch(), in, context);
    case plan::Node::kSparseBatch:
      return MakeSparseBatch(node.sparse_batch(), in, context);
    case plan::Node::kPack:
      return MakePack(node.pack(), in, context);
    case plan::Node::kBatchByTokens:
      return MakeBatchByTokens(node.batch_by_tokens(), in, context);
    case plan::Node::kReceived:
      return MakeReceived(node.received(), context);
    case plan::Node::OP_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a node has no operator");
}

}  // namespace penstock::engine
