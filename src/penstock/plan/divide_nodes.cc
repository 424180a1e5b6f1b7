#include "penstock/plan/divide_nodes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/divide.h"
#include "penstock/plan/facts.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/print.h"
#include "penstock/plan/rewrite/function_facts.h"
#include "penstock/plan/rewrite/pass.h"

namespace penstock::plan {
namespace {

// Rows that do not reach from one group into the next.
bool IsPlainWindow(const Window& op) {
  const auto is = [](const Value& value, std::optional<int64_t> wanted) {
    return ConstantInt(value) == wanted;
  };
  return is(op.shift(), ConstantInt(op.size())) && is(op.stride(), 1);
}

bool KeysByLineage(const Node& node, bool is_inside) {
  if (is_inside && NeedsInstance(node)) return true;
  for (const Function* function : FunctionsOf(node)) {
    if (IsRandom(*function)) return true;
    for (const Node& inside : function->dataset().nodes()) {
      if (KeysByLineage(inside, true)) return true;
    }
  }
  return false;
}

}  // namespace

bool HasGenerator(const Node& node) {
  if (node.has_generator()) return true;
  for (const Function* function : FunctionsOf(node)) {
    for (const Node& inside : function->dataset().nodes()) {
      if (HasGenerator(inside)) return true;
    }
  }
  return false;
}

bool OpensFiles(const Node& node) {
  const Function* function = DatasetFunctionOf(node);
  if (function == nullptr) return false;
  const auto& nodes = function->dataset().nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& inside) {
    return inside.read_files().files().has_bound();
  });
}

bool MakesDatasets(const Node& node) {
  const Function* function = DatasetFunctionOf(node);
  return function != nullptr && function->has_dataset();
}

bool IsOneToOne(const Node& node) {
  const Facts facts = FactsOf(node.op_case());
  return facts.in_parts == InParts::kRowWise && !facts.changes_count &&
         !facts.is_order_sensitive && !HasGenerator(node);
}

std::optional<int64_t> GroupSize(const Node& node) {
  switch (node.op_case()) {
    case Node::kBatch:
      return ConstantInt(node.batch().size());
    case Node::kPaddedBatch:
      return ConstantInt(node.padded_batch().size());
    case Node::kRaggedBatch:
      return ConstantInt(node.ragged_batch().size());
    case Node::kSparseBatch:
      return ConstantInt(node.sparse_batch().size());
    case Node::kWindow:
      if (!IsPlainWindow(node.window())) return std::nullopt;
      return ConstantInt(node.window().size());
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> WindowSize(const Node& node) {
  switch (node.op_case()) {
    case Node::kShuffle:
      if (!node.shuffle().has_window()) return std::nullopt;
      return ConstantInt(node.shuffle().window());
    case Node::kInterleave:
      return node.interleave().cycle_length();
    case Node::kGroupByWindow:
      return ConstantInt(node.group_by_window().window_size());
    case Node::kBucketBySequenceLength: {
      const auto& sizes = node.bucket_by_sequence_length().batch_sizes();
      double sum = 0;
      for (int64_t size : sizes) sum += static_cast<double>(size);
      return sum < 1e18 ? std::optional(static_cast<int64_t>(sum))
                        : std::nullopt;
    }
    case Node::kBatchByTokens: {
      const BatchByTokens& op = node.batch_by_tokens();
      if (op.has_window()) return op.window();
      return op.has_max_rows() ? std::optional(op.max_rows()) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::string WhyWhole(const Node& node) {
  switch (node.op_case()) {
    case Node::kTake:
    case Node::kSkip:
    case Node::kShard:
    case Node::kEnumerate:
    case Node::kAssertCardinality:
      return "counts the rows before it";
    case Node::kTakeWhile:
      return "ends at a row that only one share has";
    case Node::kCache:
      return node.cache().in_shares()
                 ? "keeps rows that are not the same in every pass, or of "
                   "groups that reach across shares"
                 : "keeps all rows of a pass in one place";
    case Node::kRebatch:
    case Node::kPack:
      return "puts rows together across shares";
    default:
      return "remembers the rows before it";
  }
}

bool DependsOnOrder(const Node& node) {
  switch (node.op_case()) {
    case Node::kTake:
    case Node::kSkip:
    case Node::kShard:
    case Node::kEnumerate:
    case Node::kTakeWhile:
    case Node::kScan:
    case Node::kReduce:
    case Node::kWindow:
      return true;
    default:
      return false;
  }
}

void KeepOrder(Plan& plan) {
  for (Node& node : *plan.mutable_nodes()) {
    switch (node.op_case()) {
      case Node::kMap:
        if (node.map().has_deterministic()) {
          node.mutable_map()->set_deterministic(true);
        }
        if (node.map().function().has_dataset()) {
          KeepOrder(*node.mutable_map()->mutable_function()->mutable_dataset());
        }
        break;
      case Node::kInterleave:
        if (node.interleave().has_deterministic()) {
          node.mutable_interleave()->set_deterministic(true);
        }
        KeepOrder(
            *node.mutable_interleave()->mutable_function()->mutable_dataset());
        break;
      case Node::kFlatMap:
        KeepOrder(
            *node.mutable_flat_map()->mutable_function()->mutable_dataset());
        break;
      case Node::kGroupByWindow:
        KeepOrder(*node.mutable_group_by_window()
                       ->mutable_reduce()
                       ->mutable_dataset());
        break;
      case Node::kBatch:
        if (node.batch().has_deterministic()) {
          node.mutable_batch()->set_deterministic(true);
        }
        break;
      case Node::kWithOptions:
        if (node.with_options().options().has_deterministic()) {
          node.mutable_with_options()->mutable_options()->set_deterministic(
              true);
        }
        break;
      default:
        break;
    }
  }
}

bool HasPlacedRecords(const ReadFiles& reader) {
  return reader.has_fixed_length() && reader.compression() == ReadFiles::NONE;
}

std::optional<ReadFiles> PlacedReaderOf(const Node& node) {
  if (!node.has_flat_map() && !node.has_interleave()) return std::nullopt;
  const Function* function = DatasetFunctionOf(node);
  if (function == nullptr || !function->has_dataset()) return std::nullopt;
  const auto& nodes = function->dataset().nodes();
  if (nodes.empty() || !nodes[0].read_files().files().has_bound() ||
      !HasPlacedRecords(nodes[0].read_files())) {
    return std::nullopt;
  }
  for (int i = 1; i < nodes.size(); ++i) {
    const Node& inside = nodes[i];
    if (FactsOf(inside.op_case()).in_parts != InParts::kRowWise ||
        HasGenerator(inside) || inside.inputs_size() != 1 ||
        inside.inputs(0) != static_cast<uint32_t>(i - 1)) {
      return std::nullopt;
    }
  }
  return nodes[0].read_files();
}

absl::Status CheckMemory(const Draft& draft) {
  for (int id = 0; id < draft.size(); ++id) {
    const Node& node = draft.node(id);
    if (!draft.is_live(id) || !node.rows().has_capture()) continue;
    const std::optional<int64_t> row_bytes = RowBytes(draft.leaves(id));
    if (!row_bytes.has_value() || *row_bytes == 0) continue;
    if (node.rows().rows() <= kMaxSharedBytes / *row_bytes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "distribute sends rows in this process's memory to workers if they "
        "take at most ",
        kMaxSharedBytes >> 20, " MiB; got ", draft.name(id), " with ",
        node.rows().rows(), " rows of ", *row_bytes,
        " bytes\n  Save them to files that workers can read.\n",
        LineOfNode(draft.name(id), node.made_at())));
  }
  return absl::OkStatus();
}

absl::Status CheckForWorkers(const Draft& draft) {
  for (int id : draft.Order()) {
    const Node& node = draft.node(id);
    std::string found;
    std::string advice;
    if (HasGenerator(node)) {
      found =
          absl::StrCat("workers run what they can read; got ", draft.name(id),
                       ", whose rows come from this process");
      advice = "Save them to files first.";
    } else if (!node.cache().filename().empty()) {
      found = absl::StrCat("workers write no files; got ", draft.name(id),
                           ", which keeps its rows in '",
                           node.cache().filename(), "'");
      advice = "Move it behind distribute(), or keep rows in memory.";
    } else {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(found, "\n  ", advice, "\n",
                     LineOfNode(draft.name(id), node.made_at())));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> AddReceived(Draft& draft, int like, int root) {
  Node received;
  *received.mutable_received()->mutable_spec() = draft.node(like).output();
  if (draft.node(like).cardinality().has_infinite()) {
    received.mutable_received()->set_infinite(true);
  }
  PENSTOCK_ASSIGN_OR_RETURN(const int at, draft.Add(std::move(received), {}));
  draft.SetRoot(root);
  Node options;
  Options& merged = *options.mutable_with_options()->mutable_options();
  for (int id : draft.Order()) {
    const Node& node = draft.node(id);
    if (node.has_with_options()) {
      merged.MergeFrom(node.with_options().options());
    }
  }
  if (merged.ByteSizeLong() == 0) return at;
  return draft.Add(std::move(options), {at});
}

bool NeedsLineage(const Node& node) { return KeysByLineage(node, false); }

}  // namespace penstock::plan
