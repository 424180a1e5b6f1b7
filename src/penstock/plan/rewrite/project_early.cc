#include "penstock/plan/rewrite/project_early.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/rewrite/compose.h"
#include "penstock/plan/rewrite/function_facts.h"

namespace penstock::plan {
namespace {

// Whether rows go through it as they are, whatever their components.
bool HandsOn(const Node& node) {
  switch (node.op_case()) {
    case Node::kShuffle:
    case Node::kPrefetch:
    case Node::kRepeat:
    case Node::kTake:
    case Node::kSkip:
    case Node::kShard:
    case Node::kIgnoreErrors:
    case Node::kWithOptions:
    case Node::kAssertCardinality:
      return true;
    case Node::kFilter:
      return IsNative(node.filter().predicate());
    case Node::kTakeWhile:
      return IsNative(node.take_while().predicate());
    default:
      return false;
  }
}

bool Holds(const Node& node) {
  return node.has_shuffle() || node.has_prefetch();
}

const Function* PredicateOf(const Node& node) {
  if (node.has_filter()) return &node.filter().predicate();
  if (node.has_take_while()) return &node.take_while().predicate();
  return nullptr;
}

int NumCalls(const Function& function) {
  return static_cast<int>(
      std::count_if(function.steps().begin(), function.steps().end(),
                    [](const auto& step) { return step.has_call(); }));
}

// What is read of the node below `chain`, ascending.
std::vector<uint32_t> Needed(const Draft& draft, int map,
                             const std::vector<int>& chain) {
  const std::vector<uint32_t> of_map =
      ArgumentsOf(draft.node(map).map().function());
  std::set<uint32_t> needed(of_map.begin(), of_map.end());
  for (int id : chain) {
    const Function* predicate = PredicateOf(draft.node(id));
    if (predicate == nullptr) continue;
    for (uint32_t argument : ArgumentsOf(*predicate)) needed.insert(argument);
  }
  if (needed.empty()) needed.insert(0);  // rows need a component
  return {needed.begin(), needed.end()};
}

// A map's node with only these of its outputs; an error if that is not to be.
absl::StatusOr<Node> Narrowed(const Draft& draft, int id,
                              const std::vector<uint32_t>& needed) {
  Node node = draft.node(id);
  Function& function = *node.mutable_map()->mutable_function();
  const Function whole = function;
  function.clear_outputs();
  for (uint32_t number : needed) {
    function.add_outputs(whole.outputs(static_cast<int>(number)));
  }
  *function.mutable_output() = TupleOfTensors(static_cast<int>(needed.size()));
  absl::StatusOr<Function> pruned =
      WithoutDeadSteps(function, draft.leaves(draft.input(id)), draft.bound());
  if (!pruned.ok()) return pruned.status();
  function = *std::move(pruned);
  return node;
}

}  // namespace

bool ProjectEarly(Draft& draft, int id, PassContext& context) {
  if (NativeMapOf(draft.node(id)) == nullptr) return false;
  std::vector<int> chain;  // the nearest first
  int below = draft.input(id);
  int user = id;
  while (HandsOn(draft.node(below)) && draft.OnlyUser(below) == user) {
    chain.push_back(below);
    user = below;
    below = draft.input(below);
  }
  const size_t components = draft.leaves(below).size();
  const std::vector<uint32_t> needed = Needed(draft, id, chain);
  if (needed.size() >= components) return false;
  const bool is_held = std::any_of(chain.begin(), chain.end(), [&](int each) {
    return Holds(draft.node(each));
  });

  const Function* source = NativeMapOf(draft.node(below));
  absl::StatusOr<int> top = absl::NotFoundError("");
  if (source != nullptr && !IsRandom(*source) &&
      draft.OnlyUser(below) == user) {
    absl::StatusOr<Node> node = Narrowed(draft, below, needed);
    if (!node.ok()) return false;
    if (!is_held && NumCalls(node->map().function()) == NumCalls(*source)) {
      return false;
    }
    top = draft.Add(*std::move(node), {draft.input(below)});
  } else if (is_held) {
    Node node;
    *node.mutable_made_at() = draft.node(id).made_at();
    node.set_key(draft.node(below).key());
    node.set_name(absl::StrCat(draft.node(below).name(), ":columns"));
    *node.mutable_map()->mutable_function() = Projection(needed);
    top = draft.Add(std::move(node), {below});
  }
  if (!top.ok()) return false;

  std::vector<uint32_t> numbers(components, 0);
  for (size_t i = 0; i < needed.size(); ++i) {
    numbers[needed[i]] = static_cast<uint32_t>(i);
  }
  chain.insert(chain.begin(), id);
  for (size_t i = chain.size(); i-- > 0 && top.ok();) {
    Node node = draft.node(chain[i]);
    for (Function* function :
         {node.has_map() ? node.mutable_map()->mutable_function() : nullptr,
          node.has_filter() ? node.mutable_filter()->mutable_predicate()
                            : nullptr,
          node.has_take_while() ? node.mutable_take_while()->mutable_predicate()
                                : nullptr}) {
      if (function != nullptr) *function = WithArguments(*function, numbers);
    }
    top = draft.Add(std::move(node), {*top});
  }
  if (!top.ok()) return false;
  Remark remark = context.Note(
      draft, {below, id},
      absl::StrCat("of ", components, " components ", needed.size(),
                   needed.size() == 1 ? " is" : " are", " read later"));
  return draft.Replace(id, *top) && context.Applied(std::move(remark));
}

}  // namespace penstock::plan
