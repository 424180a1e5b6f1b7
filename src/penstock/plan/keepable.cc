#include "penstock/plan/keepable.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/plan/facts.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/print.h"

namespace penstock::plan {
namespace {

std::optional<bool> OrderOf(const Node& node) {
  if (node.has_map() && node.map().has_deterministic()) {
    return node.map().deterministic();
  }
  if (node.has_interleave() && node.interleave().has_deterministic()) {
    return node.interleave().deterministic();
  }
  if (node.has_batch() && node.batch().has_deterministic()) {
    return node.batch().deterministic();
  }
  return std::nullopt;
}

bool MayLoseOrder(const Node& node) {
  return node.has_map() || node.has_interleave() || node.has_batch();
}

std::string WhyDiffersIn(const Plan& plan, const std::string& prefix,
                         bool is_ordered);

// Why rows after the node are not those of another pass, whatever comes in; or
// nothing.
std::string WhyDiffers(const Node& node, const std::string& name,
                       bool is_ordered) {
  if (node.has_cache()) {
    // In memory, they are what its input gave to this very cache; in files they
    // may be anybody's.
    return node.cache().filename().empty()
               ? ""
               : absl::StrCat(name, " has rows that files keep");
  }
  if (node.has_generator()) {
    return absl::StrCat(name, " calls Python, which may give other rows");
  }
  if (node.has_instance()) {
    return absl::StrCat(name, " gives other rows in every pass");
  }
  for (const Function* function : FunctionsOf(node)) {
    if (function->has_python() && !function->python().is_pure()) {
      return absl::StrCat(name, " calls Python that is not declared pure");
    }
  }
  if (MayLoseOrder(node) && !OrderOf(node).value_or(is_ordered)) {
    return absl::StrCat(name, " gives its rows in any order");
  }
  // Names that are not shuffled are sorted.
  if (!FactsOf(node.op_case()).is_pure && !node.has_list_files()) {
    return absl::StrCat(name, " may give other rows in every pass");
  }
  const Function* function = DatasetFunctionOf(node);
  if (function == nullptr) return "";
  return WhyDiffersIn(function->dataset(), name + "/", is_ordered);
}

std::string WhyDiffersIn(const Plan& plan, const std::string& prefix,
                         bool is_ordered) {
  for (int i = 0; i < plan.nodes_size(); ++i) {
    const std::string name = absl::StrCat(prefix, NodeName(plan, i));
    // Which of its caches, the function decides.
    std::string why = plan.nodes(i).has_cache()
                          ? absl::StrCat(name, " keeps its rows itself")
                          : WhyDiffers(plan.nodes(i), name, is_ordered);
    if (!why.empty()) return why;
  }
  return "";
}

void AddFunctions(const Node& node, Keepable& keepable) {
  // A cache does not notice that files change, so another may have other rows.
  if (node.has_cache()) {
    keepable.functions = Combine(keepable.functions, node.instance());
  }
  for (const Function* function : FunctionsOf(node)) {
    if (function->has_python()) {
      keepable.has_python = true;
      keepable.functions =
          HashBytes(function->python().capture(), keepable.functions);
    }
    if (!function->has_dataset()) continue;
    for (const Node& inside : function->dataset().nodes()) {
      AddFunctions(inside, keepable);
    }
  }
}

bool IsWorthwhile(const Node& node, bool is_root) {
  switch (node.op_case()) {
    case Node::kRange:
    case Node::kCounter:
    case Node::kRandom:
    case Node::kRows:
    case Node::kValues:
    case Node::kNestedRows:
    case Node::kReceived:
    case Node::kPrefetch:
    case Node::kCache:
    case Node::kWithOptions:
      return false;
    case Node::kZip:
    case Node::kConcatenate:
    case Node::kRepeat:
    case Node::kTake:
    case Node::kSkip:
    case Node::kShard:
    case Node::kEnumerate:
    case Node::kAssertCardinality:
    case Node::kListFiles:
      return is_root;
    default:
      return true;
  }
}

}  // namespace

std::vector<Keepable> FindKeepable(const Plan& plan, bool is_ordered) {
  std::vector<Keepable> result(plan.nodes_size());
  std::vector<std::string> below(plan.nodes_size());  // holds above it, too
  for (int i = 0; i < plan.nodes_size(); ++i) {
    const Node& node = plan.nodes(i);
    const std::string name = NodeName(plan, i);
    std::string& why = below[i];
    for (uint32_t input : node.inputs()) {
      if (input >= static_cast<uint32_t>(i)) continue;
      if (why.empty()) why = below[input];
      result[i].functions =
          Combine(result[i].functions, result[input].functions);
      result[i].has_python |= result[input].has_python;
    }
    AddFunctions(node, result[i]);
    if (why.empty()) why = WhyDiffers(node, name, is_ordered);
    if (why.empty() && node.has_repeat()) {
      why = absl::StrCat("rows after ", name,
                         " come more than once, or without end");
    }
    result[i].why_not = why;
    if (why.empty() && node.cardinality().infinite()) {
      result[i].why_not = absl::StrCat("rows after ", name, " have no end");
    }
    result[i].is_worthwhile = IsWorthwhile(node, i == plan.nodes_size() - 1);
  }
  return result;
}

}  // namespace penstock::plan
