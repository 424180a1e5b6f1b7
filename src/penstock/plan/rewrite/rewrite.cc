#include "penstock/plan/rewrite/rewrite.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/base/status.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/rewrite/draft.h"
#include "penstock/plan/rewrite/drop_no_ops.h"
#include "penstock/plan/rewrite/fuse_maps.h"
#include "penstock/plan/rewrite/growers_last.h"
#include "penstock/plan/rewrite/pass.h"
#include "penstock/plan/rewrite/project_early.h"
#include "penstock/plan/rewrite/push_filter.h"
#include "penstock/plan/rewrite/shuffle_before_decode.h"
#include "penstock/plan/rewrite/vectorize_pairs.h"
#include "penstock/plan/validate.h"

namespace penstock::plan {
namespace {

// Passes make plans cheaper step by step, so they end; this is in case.
constexpr int kMaxChanges = 100;
// Some passes look at all that is below a node.
constexpr int kMaxRewrittenNodes = 2000;

constexpr std::array<Pass, 7> kPasses = {{
    {"drop_no_ops", "Nodes that change nothing are left out.", false},
    {"push_filter", "Filters go before maps of which they need little.", false},
    {"project_early",
     "Components that nobody reads are neither computed nor held.", true},
    {"shuffle_before_decode", "Shuffles hold rows before maps enlarge them.",
     true},
    {"vectorize_pairs", "Batches made only to be taken apart are not made.",
     false},
    {"growers_last", "Casts to larger items wait until after a shuffle.", true},
    // Last: nothing can go between two maps that are one.
    {"fuse_maps", "Maps, and filters, one after the other become one.", false},
}};

constexpr std::array<TryAt, kPasses.size()> kActions = {
    DropNoOps,      PushFilter,  ProjectEarly, ShuffleBeforeDecode,
    VectorizePairs, GrowersLast, FuseMaps};

absl::Status CheckNames(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool is_known =
        std::any_of(kPasses.begin(), kPasses.end(),
                    [&](const Pass& pass) { return name == pass.name; });
    if (is_known) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "a pass must be one of ",
        absl::StrJoin(
            kPasses, ", ",
            [](std::string* out, const Pass& pass) { out->append(pass.name); }),
        "; got ", name));
  }
  return absl::OkStatus();
}

bool IsOn(const RewriteOptions& options, const char* name) {
  const auto has = [name](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (options.only.has_value() && !has(*options.only)) return false;
  return !has(options.without);
}

class Rewriter final {
 public:
  Rewriter(const RewriteOptions& options, Rewritten* result)
      : options_(options), result_(result) {}

  // `plan`, or another; true if it is another.
  absl::StatusOr<bool> Run(Plan& plan, const std::string& prefix,
                           uint64_t key_before) {
    PENSTOCK_ASSIGN_OR_RETURN(Draft draft,
                              Draft::Make(plan, prefix, key_before));
    PENSTOCK_ASSIGN_OR_RETURN(bool has_changed, RunInside(draft));
    PlanFacts facts = FindPlanFacts(draft);
    facts.uses_lineage |= options_.uses_lineage_later;
    facts.is_seen |= options_.is_seen_later;
    // A pass is tried once those before it find nothing more: what fuse_maps
    // makes one, nothing can go between any more.
    int changes = 0;
    for (size_t i = 0; i < kPasses.size() && changes < kMaxChanges;) {
      const bool is_new =
          IsOn(options_, kPasses[i].name) && RunPass(i, facts, draft);
      changes += is_new ? 1 : 0;
      i = is_new ? 0 : i + 1;
    }
    has_changed |= changes > 0;
    if (has_changed) plan = draft.Finish();
    return has_changed;
  }

 private:
  // Over all nodes until nothing changes; true if something did.
  bool RunPass(size_t number, const PlanFacts& facts, Draft& draft) {
    PassContext context(kPasses[number].name, options_, facts,
                        &result_->applied, &result_->declined);
    int changes = 0;
    for (bool is_new = true; is_new && changes < kMaxChanges;) {
      is_new = false;
      for (int id : draft.Order()) {
        if (draft.is_live(id)) is_new |= kActions[number](draft, id, context);
      }
      changes += is_new ? 1 : 0;
    }
    return changes > 0;
  }

  // Datasets that functions make.
  absl::StatusOr<bool> RunInside(Draft& draft) {
    bool has_changed = false;
    for (int id : draft.Order()) {
      const Function* function = DatasetFunctionOf(draft.node(id));
      if (function == nullptr || !function->has_dataset()) continue;
      Plan inside = function->dataset();
      PENSTOCK_ASSIGN_OR_RETURN(
          const bool is_other,
          Run(inside, draft.name(id) + "/", draft.node(id).key()));
      if (!is_other) continue;
      Node node = draft.node(id);
      *const_cast<Function*>(DatasetFunctionOf(node))->mutable_dataset() =
          std::move(inside);
      std::vector<int> inputs(node.inputs().begin(), node.inputs().end());
      PENSTOCK_ASSIGN_OR_RETURN(const int added,
                                draft.Add(std::move(node), std::move(inputs)));
      has_changed |= draft.Replace(id, added);
    }
    return has_changed;
  }

  const RewriteOptions& options_;
  Rewritten* const result_;
};

}  // namespace

absl::Span<const Pass> AllPasses() { return kPasses; }

absl::flat_hash_map<std::string, MeasuredRows> MeasuredOf(
    const Snapshot& snapshot) {
  absl::flat_hash_map<std::string, MeasuredRows> measured;
  for (const Snapshot::Node& node : snapshot.nodes()) {
    if (node.rows() == 0) continue;
    const auto rows = static_cast<double>(node.rows());
    measured[node.name()] = {rows, static_cast<double>(node.bytes()) / rows};
  }
  return measured;
}

std::string ToString(const Remark& remark) {
  return absl::StrCat(remark.pass, ": ",
                      absl::StrJoin(remark.nodes, ", ",
                                    [](std::string* out, const NodeRef& node) {
                                      absl::StrAppend(out, node.name);
                                      if (node.made_at.file().empty()) return;
                                      absl::StrAppend(out, " (",
                                                      node.made_at.file(), ":",
                                                      node.made_at.line(), ")");
                                    }),
                      ": ", remark.why);
}

absl::StatusOr<Rewritten> Rewrite(const Plan& plan,
                                  const RewriteOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(CheckNames(options.without));
  if (options.only.has_value()) {
    PENSTOCK_RETURN_IF_ERROR(CheckNames(*options.only));
  }
  PENSTOCK_RETURN_IF_ERROR(Validate(plan));
  Rewritten result;
  result.plan = plan;
  if (plan.nodes_size() > kMaxRewrittenNodes) {
    result.declined.push_back(
        {"rewrite",
         {},
         absl::StrCat("plans of more than ", kMaxRewrittenNodes,
                      " nodes are left as they are")});
    return result;
  }
  PENSTOCK_RETURN_IF_ERROR(
      Rewriter(options, &result).Run(result.plan, "", 0).status());
  // What was made is held to the rules that the user's plan is held to.
  const absl::Status status = Validate(result.plan);
  if (!status.ok()) {
    return absl::InternalError(
        absl::StrCat("a rewritten plan is not valid: ", status.message()));
  }
  return result;
}

}  // namespace penstock::plan
