#include "penstock/plan/rewrite/drop_no_ops.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/rewrite/compose.h"

namespace penstock::plan {
namespace {

bool ReturnsItsArguments(const Function& function, size_t arguments) {
  if (static_cast<size_t>(function.outputs_size()) != arguments) return false;
  for (int i = 0; i < function.outputs_size(); ++i) {
    if (PassedArgument(function, i) != static_cast<uint32_t>(i)) return false;
  }
  return std::none_of(function.steps().begin(), function.steps().end(),
                      [](const auto& step) { return step.has_call(); });
}

// Why the node is its (first) input, or nothing.
std::optional<std::string> WhyNothing(const Draft& draft, int id) {
  const Node& node = draft.node(id);
  if (node.has_skip() && node.skip().has_count() &&
      ConstantInt(node.skip().count()) == 0) {
    return "no element is left out";
  }
  if (node.has_take()) {
    if (!node.take().has_count()) return "all elements are taken";
    const std::optional<int64_t> count = ConstantInt(node.take().count());
    const std::optional<int64_t> rows = ProvenRows(draft, draft.input(id));
    if (count.has_value() && rows.has_value() && *count >= *rows) {
      return absl::StrCat("there are ", *rows, " elements, and all are taken");
    }
  }
  if (node.has_repeat() && node.repeat().has_count() &&
      ConstantInt(node.repeat().count()) == 1) {
    return "once is not again";
  }
  if (node.has_shard() && ConstantInt(node.shard().num_shards()) == 1 &&
      ConstantInt(node.shard().index()) == 0) {
    return "the only shard is the whole";
  }
  const Function* function = NativeMapOf(node);
  if (function != nullptr &&
      ReturnsItsArguments(*function, draft.leaves(draft.input(id)).size())) {
    return "its function returns what it is given";
  }
  return std::nullopt;
}

// Whether something leads here that the whole run sees: options, or a node that
// has an instance. That may be in the plan twice, and each counts the epochs.
bool IsSeenByRun(const Draft& draft, int id) {
  std::vector<int> todo = {id};
  std::vector<bool> is_seen(draft.size(), false);
  while (!todo.empty()) {
    const int at = todo.back();
    todo.pop_back();
    if (is_seen[at]) continue;
    is_seen[at] = true;
    const Node& node = draft.node(at);
    if (node.has_instance() || node.has_with_options() ||
        DatasetFunctionOf(node) != nullptr) {
      return true;
    }
    for (uint32_t input : node.inputs()) {
      todo.push_back(static_cast<int>(input));
    }
  }
  return false;
}

bool DropConcatenate(Draft& draft, int id, PassContext& context) {
  if (context.facts().is_seen) return false;
  for (int empty : {1, 0}) {
    if (ProvenRows(draft, draft.input(id, empty)) != 0 ||
        IsSeenByRun(draft, draft.input(id, empty))) {
      continue;
    }
    // Rows of the second get other lineages.
    if (empty == 0 && context.facts().uses_lineage) continue;
    Remark remark = context.Note(draft, {id}, "one of the two is empty");
    if (draft.Replace(id, draft.input(id, 1 - empty))) {
      return context.Applied(std::move(remark));
    }
  }
  return false;
}

bool DropPrefetch(Draft& draft, int id, PassContext& context) {
  const int below = draft.input(id);
  const Prefetch& upper = draft.node(id).prefetch();
  if (!draft.node(below).has_prefetch() || draft.OnlyUser(below) != id) {
    return false;
  }
  const Prefetch& lower = draft.node(below).prefetch();
  if (!upper.has_buffer_size()) {
    Remark remark = context.Note(draft, {id}, "the one before it is enough");
    return draft.Replace(id, below) && context.Applied(std::move(remark));
  }
  // How many are held is the user's choice, and Python may see it.
  if (context.facts().is_seen) return false;
  Node joined = Like(draft.node(id));
  joined.mutable_prefetch()->set_buffer_size(upper.buffer_size() +
                                             lower.buffer_size());
  const absl::StatusOr<int> added =
      draft.Add(std::move(joined), {draft.input(below)});
  if (!added.ok()) return false;
  Remark remark =
      context.Note(draft, {below, id}, "one can hold what two would");
  return draft.Replace(id, *added) && context.Applied(std::move(remark));
}

bool DropBatch(Draft& draft, int id, PassContext& context) {
  const int batch = draft.input(id);
  const Node& node = draft.node(batch);
  if (!node.has_batch() || draft.OnlyUser(batch) != id) return false;
  const int below = draft.input(batch);
  const auto decline = [&](const char* why) {
    return context.Declined(context.Note(draft, {batch, id}, why));
  };
  if (node.batch().drop_remainder()) {
    return decline("elements that fill no batch are left out");
  }
  if (!StacksExactly(draft.spec(below))) {
    return decline("elements may have different shapes, which is an error");
  }
  if (MayGiveErrors(draft, below)) {
    return decline("elements may be errors, which come before their batch");
  }
  if (context.facts().uses_lineage) {
    return decline("random numbers depend on an element's batch");
  }
  if (context.facts().is_seen) {
    return decline("Python functions would be called at other times");
  }
  Remark remark =
      context.Note(draft, {batch, id}, "what is put together is taken apart");
  return draft.Replace(id, below) && context.Applied(std::move(remark));
}

}  // namespace

bool DropNoOps(Draft& draft, int id, PassContext& context) {
  const Node& node = draft.node(id);
  if (node.has_concatenate()) return DropConcatenate(draft, id, context);
  if (node.has_prefetch()) return DropPrefetch(draft, id, context);
  if (node.has_unbatch()) return DropBatch(draft, id, context);
  const std::optional<std::string> why = WhyNothing(draft, id);
  if (!why.has_value()) return false;
  Remark remark = context.Note(draft, {id}, *why);
  return draft.Replace(id, draft.input(id)) &&
         context.Applied(std::move(remark));
}

}  // namespace penstock::plan
