#include "penstock/plan/divide.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/divide_by_worker.h"
#include "penstock/plan/divide_nodes.h"
#include "penstock/plan/facts.h"
#include "penstock/plan/keepable.h"
#include "penstock/plan/print.h"
#include "penstock/plan/rewrite/draft.h"
#include "penstock/plan/rewrite/function_facts.h"
#include "penstock/plan/rewrite/pass.h"

namespace penstock::plan {
namespace {

// A share holds as many windows, so that rows get about as far as in a run of
// the whole.
constexpr int64_t kWindowsInShare = 4;
// The same where readers have batches in rounds: at the end of each share some
// are of different sizes, or left out.
constexpr int64_t kWindowsToLeave = 128;
// Rows that everyone shuffles as a whole, so that shares are parts of one
// order.
constexpr int64_t kMaxShuffledRows = 65'536;

// Rows that everyone may read to get to those after them.
constexpr int64_t kMaxReadRows = int64_t{1} << 24;

// Of an index: what is not known are files, of which there are not too many.
bool AreAtMost(int64_t most, const Cardinality& rows) {
  return rows.has_unknown() || (rows.has_finite() && rows.finite() <= most);
}

class Divider final {
 public:
  Divider(Draft draft, bool in_rounds)
      : draft_(std::move(draft)), in_rounds_(in_rounds) {}

  absl::StatusOr<Division> Run() {
    LookBelow();
    PENSTOCK_RETURN_IF_ERROR(FindSource());
    PENSTOCK_RETURN_IF_ERROR(LookInside());
    PENSTOCK_RETURN_IF_ERROR(Part());
    PENSTOCK_RETURN_IF_ERROR(CheckWork());
    FindLeast();
    PENSTOCK_RETURN_IF_ERROR(MakeLocal());
    if (stitch_ >= 0) PENSTOCK_RETURN_IF_ERROR(MakeStitch());
    MakeRemote();
    return std::move(result_);
  }

 private:
  std::string Where(int id) const {
    return LineOfNode(draft_.name(id), draft_.node(id).made_at());
  }

  // What was expected and found, the node, and what to do.
  absl::Status Refused(int id, absl::string_view message,
                       absl::string_view advice) const {
    return absl::InvalidArgumentError(
        absl::StrCat(message, "\n  ", advice, "\n", Where(id)));
  }

  // By node: whether rows can be left out for nothing, and whether they are
  // few and small, as names of files are.
  void LookBelow() {
    seeks_.resize(draft_.size());
    is_index_.resize(draft_.size());
    for (int id : draft_.Order()) {
      const Node& node = draft_.node(id);
      const Facts facts = FactsOf(node.op_case());
      bool do_inputs_seek = true;
      bool are_inputs_index = true;
      for (uint32_t input : node.inputs()) {
        do_inputs_seek &= seeks_[input];
        are_inputs_index &= is_index_[input];
      }
      is_index_[id] = are_inputs_index && IsIndex(id);
      seeks_[id] = do_inputs_seek && facts.seeks && !MakesDatasets(node);
      // These read all that is before a row, which of an index costs little.
      if (node.has_concatenate() || node.has_shuffle()) {
        seeks_[id] = is_index_[id];
      }
    }
  }

  // Whether the node, over an index, gives one.
  bool IsIndex(int id) const {
    const Node& node = draft_.node(id);
    switch (node.op_case()) {
      case Node::kListFiles:
      case Node::kRange:
      case Node::kCounter:
        return true;
      case Node::kRows:
        if (!node.rows().has_chunk()) return false;
        break;
      case Node::kTake:
      case Node::kSkip:
      case Node::kShard:
      case Node::kEnumerate:
      case Node::kZip:
      case Node::kPrefetch:
      case Node::kWithOptions:
        break;
      case Node::kConcatenate:
        if (!AreAtMost(kMaxReadRows, node.cardinality())) return false;
        break;
      case Node::kShuffle:
        if (!AreAtMost(kMaxShuffledRows, node.cardinality())) return false;
        break;
      default:
        return false;
    }
    const std::vector<penstock::TensorSpec> leaves = draft_.leaves(id);
    return std::all_of(leaves.begin(), leaves.end(), [](const auto& leaf) {
      return leaf.shape.is_fully_known() && leaf.shape.rank() == 0;
    });
  }

  // Whether shares can be parts of this node's rows. Of nodes that only change
  // rows, it is rather those before them.
  bool CanShare(int id) const {
    const Node& node = draft_.node(id);
    if (node.has_read_files() || IsReceived(node)) return true;
    return seeks_[id] && !node.cardinality().has_infinite() &&
           FactsOf(node.op_case()).in_parts != InParts::kRowWise;
  }

  // Goes down from the root to the node whose rows are shared out.
  absl::Status FindSource() {
    int id = draft_.root();
    while (!CanShare(id)) {
      const Node& node = draft_.node(id);
      if (node.has_generator()) {
        return Refused(
            id,
            absl::StrCat("distribute shares out rows that workers can read; "
                         "got ",
                         draft_.name(id),
                         ", whose rows come from this process"),
            "Save them to files first, or put distribute() before what the "
            "generator is joined with.");
      }
      if (node.has_received()) {
        return Refused(id,
                       absl::StrCat("distribute shares out the rows of a job "
                                    "that has an end; got ",
                                    draft_.name(id), ", which has none"),
                       "Put repeat() behind the last distribute().");
      }
      if (node.inputs_size() == 0) {
        return Refused(
            id,
            absl::StrCat("distribute shares out the rows of a source that has "
                         "an end; got ",
                         draft_.name(id), ", which has none"),
            "Use take() right after it, or visitation=\"each_worker\", with "
            "which every worker runs the whole pipeline.");
      }
      if (node.inputs_size() > 1 && ReadsReceived(id)) {
        PENSTOCK_RETURN_IF_ERROR(CheckWhole(id));
        result_.is_whole = true;
        break;
      }
      if (node.inputs_size() > 1) {
        return Refused(
            id,
            absl::StrCat("distribute shares out the rows of one source; got ",
                         draft_.name(id), ", which joins ", node.inputs_size(),
                         " datasets"),
            absl::StrCat("Distribute the datasets one by one and move ",
                         OpName(node),
                         "() behind distribute(), or use "
                         "visitation=\"each_worker\"."));
      }
      trunk_.push_back(id);
      id = draft_.input(id);
    }
    std::reverse(trunk_.begin(), trunk_.end());
    source_ = id;
    DescribeSource();
    return CheckMemory(draft_);
  }

  // Bundles of another job, which has an end.
  static bool IsReceived(const Node& node) {
    return node.received().has_distribution() &&
           !node.cardinality().has_infinite();
  }

  // Whether some of the node's rows come from other workers.
  bool ReadsReceived(int id) const {
    const Node& node = draft_.node(id);
    return node.has_received() ||
           std::any_of(node.inputs().begin(), node.inputs().end(),
                       [&](uint32_t input) {
                         return ReadsReceived(static_cast<int>(input));
                       });
  }

  // Whether one worker can run all up to the node.
  absl::Status CheckWhole(int id) {
    if (draft_.node(id).cardinality().has_infinite()) {
      return Refused(
          id,
          absl::StrCat("distribute needs a pipeline that has an end, where it "
                       "joins what other workers compute; got ",
                       draft_.name(id), ", which has none"),
          "Put repeat() behind the last distribute().");
    }
    const int root = draft_.root();
    draft_.SetRoot(id);
    const absl::Status status = CheckForWorkers(draft_);
    draft_.SetRoot(root);
    return status;
  }

  void DescribeSource() {
    const Node& node = draft_.node(source_);
    if (result_.is_whole) {
      result_.rows = 1;
      return;
    }
    result_.is_received = node.has_received();
    if (result_.is_received) return;
    if (node.has_read_files()) {
      result_.is_files = true;
      if (HasPlacedRecords(node.read_files())) {
        result_.records = {std::nullopt, node.read_files()};
      }
      // A scalar has one name, a vector as many as it is long.
      result_.rows = node.read_files().files().constant().strings_size();
      return;
    }
    if (node.cardinality().has_finite()) {
      result_.rows = node.cardinality().finite();
    }
    result_.is_files = node.has_list_files();
    for (int id : trunk_) {
      if (IsOneToOne(draft_.node(id)) || draft_.node(id).has_repeat() ||
          draft_.node(id).has_shuffle()) {
        continue;
      }
      result_.is_files |= OpensFiles(draft_.node(id));
      if (const auto reader = PlacedReaderOf(draft_.node(id))) {
        result_.records = {id, *reader};  // the number in `remote` comes later
      }
      break;
    }
  }

  // Whether it may keep each share by itself. What it is given must be the same
  // in every pass, and all that a share has: loose rows go past it.
  bool IsKeptInShares(int id) {
    const Node& node = draft_.node(id);
    if (!node.cache().in_shares() || stitch_ >= 0 || passes_ >= 0) return false;
    const int root = draft_.root();
    Plan input = PlanOf(draft_.input(id));
    draft_.SetRoot(root);
    KeepOrder(input);
    return FindKeepable(input, /*is_ordered=*/true).back().why_not.empty();
  }

  // Of rows that are received: what is left of the other job's shares.
  absl::Status LookInside() {
    if (!result_.is_received) return absl::OkStatus();
    const Distribution& inner = draft_.node(source_).received().distribution();
    PENSTOCK_ASSIGN_OR_RETURN(
        Division division,
        DivideFor(inner.plan(), inner.visitation(), inner.sharding()));
    if (!division.stitch.has_value()) return absl::OkStatus();
    if (division.stitch->repeat.has_value()) {
      return Refused(source_,
                     absl::StrCat("distribute shares out another job whose "
                                  "batches it can complete; got ",
                                  draft_.name(source_),
                                  ", which makes batches and repeats them"),
                     "Put repeat() behind the last distribute().");
    }
    stitch_ = source_;
    inner_stitch_ = *std::move(division.stitch);
    return absl::OkStatus();
  }

  static bool LeavesOut(const Node& node) {
    return node.bucket_by_sequence_length().drop_remainder() ||
           node.batch_by_tokens().drop_remainder();
  }

  // Why the node is not run in shares, or nothing.
  std::string WhyMoved(int id) {
    const Node& node = draft_.node(id);
    if (HasGenerator(node)) return "reads a generator of this process";
    switch (FactsOf(node.op_case()).in_parts) {
      case InParts::kRowWise:
        return "";
      case InParts::kWindow:
        if (LeavesOut(node) && !in_rounds_) {
          return "leaves out rows that fill no batch, which is to happen once "
                 "and not for every share";
        }
        return "";
      case InParts::kGroups:
        if (!GroupSize(node).has_value()) return "reaches across shares";
        if (stitch_ >= 0) {
          return absl::StrCat("groups rows again after ", draft_.name(stitch_));
        }
        stitch_ = id;
        return "";
      case InParts::kPasses:
        if (passes_ >= 0) {
          return absl::StrCat("repeats what ", draft_.name(passes_),
                              " repeats");
        }
        passes_ = id;
        return "";
      case InParts::kSource:
      case InParts::kWhole:
        if (IsKeptInShares(id)) {
          result_.is_kept = true;
          return "";
        }
        return WhyWhole(node);
    }
    return "";
  }

  // Sorts the nodes after the source into remote and local ones.
  absl::Status Part() {
    int at = source_;
    bool picks_by_place = true;  // all that were moved
    for (int id : trunk_) {
      const Node& node = draft_.node(id);
      if (local_.empty()) {
        const std::string why = WhyMoved(id);
        if (why.empty()) {
          remote_.push_back(id);
          at = id;
          continue;
        }
        result_.moved.push_back(
            {draft_.name(id), node.made_at(), why, DependsOnOrder(node)});
      } else if (node.has_with_options() ||
                 (picks_by_place && IsOneToOne(node))) {
        // Rows are picked as well after it as before; options hold for all.
        PENSTOCK_ASSIGN_OR_RETURN(at, draft_.Add(node, {at}));
        remote_.push_back(at);
        continue;
      } else {
        result_.moved.push_back(
            {draft_.name(id), node.made_at(),
             absl::StrCat("comes after ", draft_.name(local_.front()))});
      }
      picks_by_place &= FactsOf(node.op_case()).picks_by_place;
      local_.push_back(id);
    }
    root_ = at;
    return absl::OkStatus();
  }

  // Whether there is anything for workers to do.
  absl::Status CheckWork() {
    if (local_.empty()) return absl::OkStatus();
    const int root = draft_.root();
    draft_.SetRoot(root_);
    bool has_work = false;
    for (int id : draft_.Order()) {
      has_work |= id >= static_cast<int>(is_index_.size()) || !is_index_[id];
    }
    draft_.SetRoot(root);
    if (has_work) return absl::OkStatus();
    const int id = local_.front();
    return Refused(
        id,
        absl::StrCat("distribute needs something that workers can do share by "
                     "share; got ",
                     draft_.name(id), " right after the source, which ",
                     result_.moved.front().why),
        absl::StrCat("Move ", OpName(draft_.node(id)),
                     "() behind distribute(), or use "
                     "visitation=\"each_worker\"."));
  }

  void Need(int64_t rows, std::optional<double> per_source_row) {
    if (!per_source_row.has_value()) {
      result_.least_elements = std::max(result_.least_elements, rows);
      return;
    }
    const double needed =
        std::ceil(static_cast<double>(rows) / *per_source_row);
    constexpr double kMost = 9.2e18;  // fits an int64
    result_.least_rows = std::max(
        result_.least_rows, static_cast<int64_t>(std::min(needed, kMost)));
  }

  void FindLeast() {
    // Rows there that come of one of the source; unset: not known.
    std::optional<double> ratio = 1;
    if (draft_.node(source_).has_read_files() || result_.is_received ||
        result_.is_whole) {
      ratio.reset();
    }
    for (int id : remote_) {
      const Node& node = draft_.node(id);
      const Facts facts = FactsOf(node.op_case());
      if (facts.in_parts == InParts::kGroups) {
        const int64_t size = *GroupSize(node);
        Need(size, ratio);
        if (ratio.has_value()) *ratio /= static_cast<double>(size);
        continue;
      }
      if (facts.in_parts == InParts::kPasses) continue;
      if (facts.in_parts == InParts::kWindow) {
        const std::optional<int64_t> size = WindowSize(node);
        const bool is_places = node.has_interleave();
        if (!is_places) {
          result_.windows.push_back({draft_.name(id), node.made_at(), size});
        }
        constexpr int64_t kMost =
            std::numeric_limits<int64_t>::max() / kWindowsToLeave;
        const bool is_batching =
            node.has_bucket_by_sequence_length() || node.has_batch_by_tokens();
        const int64_t windows =
            in_rounds_ && is_batching ? kWindowsToLeave : kWindowsInShare;
        if (size.has_value()) {
          Need(is_places ? *size : std::min(*size, kMost) * windows, ratio);
        }
      }
      if (facts.changes_count || node.has_interleave()) ratio.reset();
    }
    if (result_.rows.has_value()) {
      result_.least_rows = std::clamp<int64_t>(
          result_.least_rows, 1, std::max<int64_t>(1, *result_.rows));
    }
  }

  // The plan that ends with the node.
  Plan PlanOf(int id) {
    draft_.SetRoot(id);
    return draft_.Finish();
  }

  // The node's number in PlanOf(the root).
  int NumberOf(int id, int root) {
    draft_.SetRoot(root);
    const std::vector<int> order = draft_.Order();
    return static_cast<int>(std::find(order.begin(), order.end(), id) -
                            order.begin());
  }

  absl::Status MakeLocal() {
    PENSTOCK_ASSIGN_OR_RETURN(int at, AddReceived(draft_, root_, root_));
    for (int id : local_) {
      PENSTOCK_ASSIGN_OR_RETURN(at, draft_.Add(draft_.node(id), {at}));
      result_.needs_lineage |= NeedsLineage(draft_.node(id));
    }
    result_.local = PlanOf(at);
    return absl::OkStatus();
  }

  // Loose rows of the other job, and what it makes of them.
  absl::StatusOr<int> AddInnerStitch() {
    int at = -1;
    for (Node node : inner_stitch_->after.nodes()) {
      std::vector<int> inputs;
      if (node.inputs_size() > 0) inputs.push_back(at);
      node.clear_inputs();
      PENSTOCK_ASSIGN_OR_RETURN(at, draft_.Add(node, std::move(inputs)));
      result_.needs_lineage |= NeedsLineage(node);
    }
    return at;
  }

  absl::Status MakeStitch() {
    auto begin = std::find(remote_.begin(), remote_.end(), stitch_);
    int at;
    if (inner_stitch_.has_value()) {
      begin = remote_.begin();
      PENSTOCK_ASSIGN_OR_RETURN(at, AddInnerStitch());
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(
          at, AddReceived(draft_, draft_.input(stitch_), root_));
    }
    int repeat = -1;
    for (auto id = begin; id != remote_.end(); ++id) {
      PENSTOCK_ASSIGN_OR_RETURN(at, draft_.Add(draft_.node(*id), {at}));
      if (*id == passes_) repeat = at;
      result_.needs_lineage |= NeedsLineage(draft_.node(*id));
    }
    Division::Stitch stitch;
    stitch.node = NumberOf(stitch_, root_);
    stitch.size = inner_stitch_.has_value() ? inner_stitch_->size
                                            : *GroupSize(draft_.node(stitch_));
    stitch.after = PlanOf(at);
    if (repeat >= 0) stitch.repeat = NumberOf(repeat, at);
    result_.stitch = std::move(stitch);
    return absl::OkStatus();
  }

  void MakeRemote() {
    result_.source = NumberOf(source_, root_);
    if (passes_ >= 0) {
      Division::Passes passes;
      passes.node = NumberOf(passes_, root_);
      const Repeat& repeat = draft_.node(passes_).repeat();
      if (repeat.has_count()) passes.count = ConstantInt(repeat.count());
      result_.passes = passes;
    }
    if (result_.records && result_.records->opener) {
      result_.records->opener = NumberOf(*result_.records->opener, root_);
    }
    result_.remote = PlanOf(root_);
    KeepOrder(result_.remote);
  }

  Draft draft_;
  std::vector<bool> seeks_;
  std::vector<bool> is_index_;
  std::vector<int> trunk_;   // from above the source to the root
  std::vector<int> remote_;  // of the trunk, and moved before what is local
  std::vector<int> local_;
  int source_ = -1;
  int root_ = -1;  // of the remote plan
  const bool in_rounds_;
  int stitch_ = -1;
  std::optional<Division::Stitch>
      inner_stitch_;  // of a source that is received
  int passes_ = -1;
  Division result_;
};

}  // namespace

bool Division::needs_order() const {
  return std::any_of(moved.begin(), moved.end(),
                     [](const Moved& each) { return each.needs_order; });
}

std::vector<int> PlacesInShares(const Division& division) {
  std::vector<int> places;
  if (division.is_kept || division.by_worker) return places;
  int end = division.remote.nodes_size();
  if (division.stitch) end = std::min(end, division.stitch->node);
  if (division.passes) end = std::min(end, division.passes->node);
  for (int node = division.source; node < end; ++node) places.push_back(node);
  return places;
}

absl::StatusOr<Division> Divide(const Plan& plan, bool in_rounds) {
  PENSTOCK_ASSIGN_OR_RETURN(Draft draft, Draft::Make(plan, "", 0));
  return Divider(std::move(draft), in_rounds).Run();
}

}  // namespace penstock::plan
