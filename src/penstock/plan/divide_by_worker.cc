#include "penstock/plan/divide_by_worker.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/divide_nodes.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/print.h"
#include "penstock/plan/rewrite/draft.h"

namespace penstock::plan {
namespace {

absl::Status Refused(const Draft& draft, int id, absl::StatusCode code,
                     absl::string_view message, absl::string_view advice) {
  return absl::Status(
      code, absl::StrCat(message, "\n  ", advice, "\n",
                         LineOfNode(draft.name(id), draft.node(id).made_at())));
}

bool HasHintInside(const Plan& plan) {
  return std::any_of(plan.nodes().begin(), plan.nodes().end(),
                     [](const Node& node) {
                       if (node.shard().is_by_worker()) return true;
                       const Function* function = DatasetFunctionOf(node);
                       return function != nullptr && function->has_dataset() &&
                              HasHintInside(function->dataset());
                     });
}

// The shard() that says so; -1: none does.
absl::StatusOr<int> FindHint(const Draft& draft, bool may_have) {
  int found = -1;
  for (int id : draft.Order()) {
    const Node& node = draft.node(id);
    const Function* function = DatasetFunctionOf(node);
    const bool is_inside = function != nullptr && function->has_dataset() &&
                           HasHintInside(function->dataset());
    if (!node.shard().is_by_worker() && !is_inside) continue;
    if (!may_have) {
      return Refused(
          draft, id, absl::StatusCode::kFailedPrecondition,
          absl::StrCat("shard(SHARD_HINT) is for visitation=\"static\", "
                       "sharding=\"hint\"; got it in ",
                       draft.name(id), " with another policy"),
          "Use that policy, or give shard() two numbers.");
    }
    if (is_inside || found >= 0) {
      return Refused(
          draft, id, absl::StatusCode::kInvalidArgument,
          absl::StrCat("one shard() outside of functions may have "
                       "SHARD_HINT; got ",
                       is_inside ? "one inside " : "another, ", draft.name(id)),
          "Use it once, where workers part.");
    }
    found = id;
  }
  return found;
}

// The node whose rows are files; -1: there is none that all is made of.
int FindFiles(const Draft& draft) {
  for (int id = draft.root(); true; id = draft.input(id)) {
    const Node& node = draft.node(id);
    if (node.has_read_files()) return id;
    if (node.inputs_size() != 1) return -1;
    if (OpensFiles(node)) return draft.input(id);
  }
}

// The node of which every n-th row makes every n-th row of the plan.
int FindRows(const Draft& draft) {
  int id = draft.root();
  while (IsOneToOne(draft.node(id)) && draft.node(id).inputs_size() == 1) {
    id = draft.input(id);
  }
  return id;
}

}  // namespace

absl::StatusOr<Division> DivideByWorker(const Plan& plan,
                                        Distribution::Visitation visitation,
                                        Distribution::Sharding sharding) {
  PENSTOCK_ASSIGN_OR_RETURN(Draft draft, Draft::Make(plan, "", 0));
  PENSTOCK_RETURN_IF_ERROR(CheckForWorkers(draft));
  PENSTOCK_RETURN_IF_ERROR(CheckMemory(draft));
  const bool is_static = visitation == Distribution::STATIC;
  const bool is_hint = is_static && sharding == Distribution::HINT;
  PENSTOCK_ASSIGN_OR_RETURN(const int hint, FindHint(draft, is_hint));
  const int root = draft.root();
  if (is_hint && hint < 0) {
    return Refused(
        draft, root, absl::StatusCode::kInvalidArgument,
        "sharding=\"hint\" needs a shard(SHARD_HINT) that says where "
        "workers part; got none",
        "Put shard(ps.SHARD_HINT, 0) there, or use "
        "sharding=\"file_or_data\".");
  }
  const bool wants_files =
      is_static && (sharding == Distribution::FILE ||
                    sharding == Distribution::FILE_OR_DATA);
  const int files = wants_files ? FindFiles(draft) : -1;
  if (files < 0 && is_static && sharding == Distribution::FILE) {
    return Refused(draft, root, absl::StatusCode::kNotFound,
                   "sharding=\"file\" needs a pipeline that begins with files "
                   "that are read; found none",
                   "Use sharding=\"data\" or \"file_or_data\".");
  }
  const std::vector<int> order = draft.Order();
  const auto number_of = [&](int id) {
    return static_cast<int>(std::find(order.begin(), order.end(), id) -
                            order.begin());
  };
  Division division;
  division.by_worker.emplace();
  if (hint >= 0) division.by_worker->rows = number_of(hint);
  if (is_static && (sharding == Distribution::DATA ||
                    sharding == Distribution::FILE_OR_DATA)) {
    division.by_worker->rows = number_of(FindRows(draft));
  }
  if (files >= 0) {
    const Node& node = draft.node(files);
    division.by_worker->files = division.source = number_of(files);
    division.is_files = true;
    if (node.has_read_files()) {
      division.rows = node.read_files().files().constant().strings_size();
    } else if (node.cardinality().has_finite()) {
      division.rows = node.cardinality().finite();
    }
  }
  division.remote = draft.Finish();
  KeepOrder(division.remote);
  PENSTOCK_ASSIGN_OR_RETURN(const int received, AddReceived(draft, root, root));
  draft.SetRoot(received);
  division.local = draft.Finish();
  return division;
}

absl::StatusOr<Division> DivideFor(const Plan& plan,
                                   Distribution::Visitation visitation,
                                   Distribution::Sharding sharding,
                                   bool in_rounds) {
  if (visitation == Distribution::EACH_WORKER ||
      visitation == Distribution::STATIC) {
    return DivideByWorker(plan, visitation, sharding);
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Draft draft, Draft::Make(plan, "", 0));
  PENSTOCK_RETURN_IF_ERROR(FindHint(draft, /*may_have=*/false).status());
  return Divide(plan, in_rounds);
}

}  // namespace penstock::plan
