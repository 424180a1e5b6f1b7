#include "penstock/plan/rewrite/rewriting.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/cardinality.h"
#include "penstock/plan/fingerprint.h"
#include "penstock/plan/print.h"
#include "penstock/plan/rewrite/draft.h"
#include "penstock/plan/rewrite/pass.h"
#include "penstock/plan/validate.h"

namespace penstock::plan {
namespace {

RewriteOptions OptionsOf(const Rewriting& rewriting) {
  RewriteOptions options;
  options.only.emplace(rewriting.passes().begin(), rewriting.passes().end());
  options.may_hide_errors = rewriting.may_hide_errors();
  for (const auto& [name, rows] : rewriting.measured()) {
    options.measured[name] = {rows.rows(), rows.row_bytes()};
  }
  return options;
}

// The nodes that there were, as a plan.
Plan FirstNodes(const Plan& plan, int count) {
  Plan first;
  *first.mutable_bound() = plan.bound();
  for (int i = 0; i < count; ++i) *first.add_nodes() = plan.nodes(i);
  return first;
}

bool IsAppended(const Plan& plan, int count) {
  for (int i = count; i < plan.nodes_size(); ++i) {
    for (uint32_t input : plan.nodes(i).inputs()) {
      if (input + 1 < static_cast<uint32_t>(count)) return false;
    }
  }
  return true;
}

bool HasCache(const Plan& plan, int from) {
  return std::any_of(plan.nodes().begin() + from, plan.nodes().end(),
                     [](const Node& node) { return node.has_cache(); });
}

// The nodes of `plan` from `count` on, over the root of `first`.
absl::StatusOr<Plan> Grown(const Plan& first, const Plan& plan, int count) {
  PENSTOCK_ASSIGN_OR_RETURN(Draft draft, Draft::Make(first, "", 0));
  const std::vector<uint64_t> keys = KeysOf(plan, 0);
  std::vector<int> ids = {draft.root()};  // from count - 1 on
  for (int i = count; i < plan.nodes_size(); ++i) {
    Node node = plan.nodes(i);
    if (!node.has_with_options()) node.set_key(keys[i]);
    node.set_name(NodeName(plan, i));
    std::vector<int> inputs;
    for (uint32_t input : node.inputs()) {
      inputs.push_back(ids[input + 1 - static_cast<uint32_t>(count)]);
    }
    PENSTOCK_ASSIGN_OR_RETURN(ids.emplace_back(),
                              draft.Add(std::move(node), std::move(inputs)));
  }
  draft.SetRoot(ids.back());
  return draft.Finish();
}

}  // namespace

Rewriting ToRewriting(const Plan& plan, const RewriteOptions& options,
                      const Rewritten& rewritten) {
  Rewriting rewriting;
  std::set<std::string> applied;
  for (const Remark& remark : rewritten.applied) applied.insert(remark.pass);
  for (const Pass& pass : AllPasses()) {
    if (applied.contains(pass.name)) rewriting.add_passes(pass.name);
  }
  rewriting.set_may_hide_errors(options.may_hide_errors);
  rewriting.set_nodes(static_cast<uint32_t>(plan.nodes_size()));
  rewriting.set_fingerprint(Fingerprint(rewritten.plan));
  // Most passes go by specs alone.
  const absl::StatusOr<Rewritten> unmeasured =
      Rewrite(plan, OptionsOf(rewriting));
  if (unmeasured.ok() &&
      Fingerprint(unmeasured->plan) == rewriting.fingerprint()) {
    return rewriting;
  }
  for (const auto& [name, measured] : options.measured) {
    Rewriting::Rows& rows = (*rewriting.mutable_measured())[name];
    rows.set_rows(measured.rows);
    rows.set_row_bytes(measured.row_bytes);
  }
  return rewriting;
}

absl::StatusOr<Plan> Apply(const Plan& plan, const Rewriting& rewriting) {
  if (rewriting.nodes() < 1) {
    return absl::InvalidArgumentError(
        "a rewriting must be of at least 1 node; got 0");
  }
  // Of a longer plan, which may be the same: options count as nodes.
  const auto count = static_cast<int>(
      std::min(rewriting.nodes(), static_cast<uint32_t>(plan.nodes_size())));
  const Plan first = FirstNodes(plan, count);
  RewriteOptions options = OptionsOf(rewriting);
  if (count < plan.nodes_size()) {
    PENSTOCK_ASSIGN_OR_RETURN(const Draft whole, Draft::Make(plan, "", 0));
    const PlanFacts facts = FindPlanFacts(whole);
    options.uses_lineage_later = facts.uses_lineage;
    options.is_seen_later = facts.is_seen;
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Rewritten rewritten, Rewrite(first, options));
  const std::string fingerprint = Fingerprint(rewritten.plan);
  if (fingerprint != rewriting.fingerprint()) {
    const absl::StatusOr<Rewritten> alone =
        Rewrite(first, OptionsOf(rewriting));
    if (alone.ok() && Fingerprint(alone->plan) == rewriting.fingerprint()) {
      return absl::FailedPreconditionError(
          "what was appended must not notice what was rewritten; its random "
          "numbers depend on batches, or its Python on when it is called");
    }
    return absl::FailedPreconditionError(
        absl::StrCat("rewriting must make pipeline ", rewriting.fingerprint(),
                     " as it did when it was decided; it makes ", fingerprint));
  }
  if (count == plan.nodes_size()) return rewritten.plan;
  if (!IsAppended(plan, count)) {
    return absl::InvalidArgumentError(
        absl::StrCat("nodes after the first ", count,
                     " must be appended to them; they read others"));
  }
  const Node& root = rewritten.plan.nodes(rewritten.plan.nodes_size() - 1);
  if (HasCache(plan, count) &&
      !(root.cardinality() == first.nodes(count - 1).cardinality())) {
    return absl::FailedPreconditionError(
        "a cache must not hear that the number of its rows is known");
  }
  PENSTOCK_ASSIGN_OR_RETURN(Plan grown, Grown(rewritten.plan, plan, count));
  PENSTOCK_RETURN_IF_ERROR(Validate(grown));
  return grown;
}

}  // namespace penstock::plan
