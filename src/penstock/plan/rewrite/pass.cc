#include "penstock/plan/rewrite/pass.h"

#include <algorithm>
#include <utility>

#include "penstock/plan/convert.h"
#include "penstock/plan/expect.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/rewrite/compose.h"
#include "penstock/plan/rewrite/function_facts.h"

namespace penstock::plan {
namespace {

// Nodes below one that are asked about, at most.
constexpr int kMaxLookedAt = 256;

// Whether something of the sub-plan is told apart by the outer row.
bool HasInstance(const Plan& plan) {
  return std::any_of(
      plan.nodes().begin(), plan.nodes().end(), [](const Node& node) {
        const Function* function = DatasetFunctionOf(node);
        return NeedsInstance(node) ||
               (function != nullptr && HasInstance(function->dataset()));
      });
}

bool IsSeen(const Node& node) {
  if (node.has_generator()) return true;
  for (const Function* function : FunctionsOf(node)) {
    if (function->has_python()) return true;
    for (const Node& inside : function->dataset().nodes()) {
      if (IsSeen(inside)) return true;
    }
  }
  return false;
}

// Whether the node hands rows on as they are, all, some or in another order.
bool KeepsRows(const Node& node) {
  switch (node.op_case()) {
    case Node::kFilter:
    case Node::kShuffle:
    case Node::kRepeat:
    case Node::kTake:
    case Node::kSkip:
    case Node::kTakeWhile:
    case Node::kShard:
    case Node::kPrefetch:
    case Node::kCache:
    case Node::kIgnoreErrors:
    case Node::kWithOptions:
    case Node::kAssertCardinality:
      return true;
    default:
      return false;
  }
}

}  // namespace

PlanFacts FindPlanFacts(const Draft& draft) {
  PlanFacts facts;
  facts.uses_lineage = draft.is_inside();
  for (int id : draft.Order()) {
    const Node& node = draft.node(id);
    facts.is_seen |= IsSeen(node);
    for (const Function* function : FunctionsOf(node)) {
      facts.uses_lineage |=
          IsRandom(*function) || HasInstance(function->dataset());
    }
  }
  return facts;
}

Remark PassContext::Note(const Draft& draft, absl::Span<const int> ids,
                         std::string why) const {
  Remark remark;
  remark.pass = pass_;
  for (int id : ids) {
    remark.nodes.push_back({draft.name(id), draft.node(id).made_at()});
  }
  remark.why = std::move(why);
  return remark;
}

bool PassContext::Applied(Remark remark) {
  applied_->push_back(std::move(remark));
  return true;
}

bool PassContext::Declined(Remark remark) {
  const std::string text = ToString(remark);
  for (const Remark& other : *declined_) {
    if (ToString(other) == text) return false;
  }
  declined_->push_back(std::move(remark));
  return false;
}

std::optional<double> PassContext::RowBytes(const Draft& draft, int id) const {
  while (KeepsRows(draft.node(id))) id = draft.input(id);
  const std::optional<int64_t> known = plan::RowBytes(draft.leaves(id));
  if (known.has_value()) return static_cast<double>(*known);
  const auto at = options_.measured.find(draft.name(id));
  if (at == options_.measured.end() || at->second.rows < 1) return std::nullopt;
  return at->second.row_bytes;
}

const Function* NativeMapOf(const Node& node) {
  if (!node.has_map() || !IsNative(node.map().function())) return nullptr;
  return &node.map().function();
}

const Function* NativePredicateOf(const Node& node) {
  if (!node.has_filter() || !IsNative(node.filter().predicate())) {
    return nullptr;
  }
  return &node.filter().predicate();
}

Function NamedFunction(const Draft& draft, int id, Function function) {
  SetOrigin(function, draft.name(id), draft.node(id).made_at());
  return function;
}

bool MayGiveErrors(const Draft& draft, int id) {
  std::vector<int> todo = {id};
  std::vector<bool> is_seen(draft.size(), false);
  int looked_at = 0;
  while (!todo.empty()) {
    const int at = todo.back();
    todo.pop_back();
    if (is_seen[at]) continue;
    is_seen[at] = true;
    if (++looked_at > kMaxLookedAt) return true;
    const Node& node = draft.node(at);
    switch (node.op_case()) {
      case Node::kRange:
      case Node::kCounter:
      case Node::kRandom:
      case Node::kRows:
      case Node::kIgnoreErrors:
        continue;
      case Node::kZip:
      case Node::kConcatenate:
      case Node::kShuffle:
      case Node::kRepeat:
      case Node::kTake:
      case Node::kSkip:
      case Node::kShard:
      case Node::kEnumerate:
      case Node::kPrefetch:
      case Node::kWithOptions:
        break;
      case Node::kBatch:
        if (!StacksExactly(draft.spec(draft.input(at)))) return true;
        break;
      case Node::kMap:
      case Node::kFilter:
        if (MayFail(*FunctionsOf(node)[0], draft.leaves(draft.input(at)),
                    draft.bound())) {
          return true;
        }
        break;
      default:
        return true;
    }
    for (uint32_t input : node.inputs()) {
      todo.push_back(static_cast<int>(input));
    }
  }
  return false;
}

std::optional<int64_t> ProvenRows(const Draft& draft, int id) {
  if (!draft.node(id).cardinality().has_finite()) return std::nullopt;
  std::vector<int> todo = {id};
  std::vector<bool> is_seen(draft.size(), false);
  while (!todo.empty()) {
    const int at = todo.back();
    todo.pop_back();
    if (is_seen[at]) continue;
    is_seen[at] = true;
    const Node& node = draft.node(at);
    if (node.has_assert_cardinality() || node.has_cache() ||
        DatasetFunctionOf(node) != nullptr) {
      return std::nullopt;
    }
    for (uint32_t input : node.inputs()) {
      todo.push_back(static_cast<int>(input));
    }
  }
  return draft.node(id).cardinality().finite();
}

bool StacksExactly(const penstock::ElementSpec& spec) {
  switch (spec.kind) {
    case penstock::ElementSpec::Kind::kTensor:
      return spec.tensor.shape.is_fully_known();
    case penstock::ElementSpec::Kind::kTuple:
    case penstock::ElementSpec::Kind::kDict:
    case penstock::ElementSpec::Kind::kNamed:
      return !IsComposite(spec) && !spec.children.empty() &&
             std::all_of(spec.children.begin(), spec.children.end(),
                         StacksExactly);
    default:
      return false;
  }
}

std::optional<int64_t> ConstantInt(const Value& value) {
  if (!value.has_constant()) return std::nullopt;
  const absl::StatusOr<Number> number = NumberOf(value.constant());
  if (!number.ok() || !number->is_integer) return std::nullopt;
  return number->integer;
}

}  // namespace penstock::plan
