#include "penstock/plan/facts.h"

namespace penstock::plan {
namespace {

constexpr Facts kPure = {.is_pure = true};
constexpr Facts kPureInOrder = {.is_pure = true, .is_order_sensitive = true};
constexpr Facts kRegroups = {
    .is_pure = true, .is_order_sensitive = true, .changes_count = true};
constexpr Facts kFolds = {.is_pure = true,
                          .is_stateful = true,
                          .is_order_sensitive = true,
                          .changes_count = true};

Facts InOneRun(Node::OpCase op) {
  switch (op) {
    case Node::kRange:
    case Node::kCounter:
    case Node::kRows:
    case Node::kValues:
    case Node::kNestedRows:
    case Node::kReadFiles:
      return kPure;
    case Node::kRandom:
    case Node::kListFiles:
      return {.draws = true};
    case Node::kGenerator:
      return {.is_stateful = true};
    case Node::kShuffle:
      return {.draws = true, .is_order_sensitive = true};
    case Node::kSampleFromDatasets:
      return {.draws = true, .is_order_sensitive = true, .changes_count = true};
    case Node::kMap:
    case Node::kPrefetch:
    case Node::kCache:
    case Node::kWithOptions:
      return kPure;
    case Node::kZip:
    case Node::kEnumerate:
    case Node::kAssertCardinality:
      return kPureInOrder;
    case Node::kFilter:
    case Node::kIgnoreErrors:
    case Node::kFlatMap:
      return {.is_pure = true, .changes_count = true};
    case Node::kConcatenate:
    case Node::kInterleave:
    case Node::kBatch:
    case Node::kPaddedBatch:
    case Node::kRaggedBatch:
    case Node::kSparseBatch:
    case Node::kUnbatch:
    case Node::kRebatch:
    case Node::kRepeat:
    case Node::kTake:
    case Node::kSkip:
    case Node::kTakeWhile:
    case Node::kShard:
    case Node::kWindow:
    case Node::kChooseFromDatasets:
      return kRegroups;
    case Node::kScan:
      return {.is_pure = true, .is_stateful = true, .is_order_sensitive = true};
    case Node::kReduce:
    case Node::kPack:
    case Node::kUnique:
    case Node::kGroupByWindow:
    case Node::kBucketBySequenceLength:
    case Node::kBatchByTokens:
      return kFolds;
    case Node::kReceived:
    case Node::OP_NOT_SET:
      return {};
  }
  return {};
}

InParts InPartsOf(Node::OpCase op) {
  switch (op) {
    case Node::kRange:
    case Node::kCounter:
    case Node::kRandom:
    case Node::kRows:
    case Node::kValues:
    case Node::kListFiles:
    case Node::kReadFiles:
      return InParts::kSource;
    case Node::kMap:
    case Node::kFilter:
    case Node::kFlatMap:
    case Node::kUnbatch:
    case Node::kIgnoreErrors:
    case Node::kPrefetch:
    case Node::kWithOptions:
      return InParts::kRowWise;
    case Node::kShuffle:
    case Node::kInterleave:
    case Node::kGroupByWindow:
    case Node::kBucketBySequenceLength:
    case Node::kBatchByTokens:
      return InParts::kWindow;
    case Node::kBatch:
    case Node::kPaddedBatch:
    case Node::kRaggedBatch:
    case Node::kSparseBatch:
    case Node::kWindow:
      return InParts::kGroups;
    case Node::kRepeat:
      return InParts::kPasses;
    case Node::kGenerator:
    case Node::kNestedRows:
    case Node::kReceived:
    case Node::kZip:
    case Node::kConcatenate:
    case Node::kSampleFromDatasets:
    case Node::kChooseFromDatasets:
    case Node::kRebatch:
    case Node::kTake:
    case Node::kSkip:
    case Node::kTakeWhile:
    case Node::kShard:
    case Node::kEnumerate:
    case Node::kAssertCardinality:
    case Node::kCache:
    case Node::kScan:
    case Node::kReduce:
    case Node::kPack:
    case Node::kUnique:
    case Node::OP_NOT_SET:
      return InParts::kWhole;
  }
  return InParts::kWhole;
}

bool Seeks(Node::OpCase op) {
  switch (op) {
    case Node::kRange:
    case Node::kCounter:
    case Node::kRandom:
    case Node::kRows:
    case Node::kValues:
    case Node::kListFiles:
    case Node::kMap:
    case Node::kPrefetch:
    case Node::kWithOptions:
    case Node::kTake:
    case Node::kSkip:
    case Node::kShard:
    case Node::kEnumerate:
    case Node::kZip:
      return true;
    default:
      return false;
  }
}

}  // namespace

Facts FactsOf(Node::OpCase op) {
  Facts facts = InOneRun(op);
  facts.in_parts = InPartsOf(op);
  facts.seeks = Seeks(op);
  facts.picks_by_place =
      op == Node::kTake || op == Node::kSkip || op == Node::kShard;
  return facts;
}

}  // namespace penstock::plan
