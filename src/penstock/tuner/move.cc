#include "penstock/tuner/move.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/facts.h"

namespace penstock::tuner {
namespace {

// Whether its rows are other rows than its input's: some of them together, or
// parts of them.
bool Regroups(plan::Node::OpCase op) {
  switch (op) {
    case plan::Node::kFilter:
    case plan::Node::kIgnoreErrors:
    case plan::Node::kRepeat:
    case plan::Node::kTake:
    case plan::Node::kSkip:
    case plan::Node::kTakeWhile:
    case plan::Node::kShard:
    case plan::Node::kUnique:
      return false;
    default:
      return plan::FactsOf(op).changes_count;
  }
}

// Whether what a row costs is copying it.
bool CostsByBytes(plan::Node::OpCase op) {
  switch (op) {
    case plan::Node::kMap:
    case plan::Node::kFilter:
    case plan::Node::kTakeWhile:
    case plan::Node::kScan:
    case plan::Node::kUnique:
      return false;
    default:
      return true;
  }
}

class Mover final {
 public:
  explicit Mover(Model& model)
      : model_(model), measured_(*model.measured), users_(model.nodes.size()) {
    for (size_t i = 0; i < model.nodes.size(); ++i) {
      for (int input : model.nodes[i].inputs) {
        users_[input].push_back(static_cast<int>(i));
      }
    }
  }

  // `before` is a place, or the number of nodes: last of all.
  absl::Status Run(int moved, int before) {
    if (moved == before) return Refused(moved, "cannot be before itself");
    PENSTOCK_RETURN_IF_ERROR(ExpectOneInput(moved));
    const bool is_up = before < moved;
    // Those that it goes past, source first, and whom it comes after.
    std::vector<int> passed;
    const int end = is_up ? before : moved;
    int at = is_up ? model_.nodes[moved].inputs[0] : LastBefore(before);
    while (at != end) {
      if (at < end || at < 0) return NoChain(moved, before);
      PENSTOCK_RETURN_IF_ERROR(ExpectOneInput(at));
      PENSTOCK_RETURN_IF_ERROR(ExpectOneUser(at, moved, before));
      passed.push_back(at);
      at = model_.nodes[at].inputs[0];
    }
    if (is_up) {
      PENSTOCK_RETURN_IF_ERROR(ExpectOneInput(before));
      PENSTOCK_RETURN_IF_ERROR(ExpectOneUser(before, moved, before));
      passed.push_back(before);
    } else {
      PENSTOCK_RETURN_IF_ERROR(ExpectOneUser(moved, moved, before));
    }
    std::reverse(passed.begin(), passed.end());
    PENSTOCK_RETURN_IF_ERROR(ExpectComputed(moved));
    for (int each : passed) {
      PENSTOCK_RETURN_IF_ERROR(ExpectComputed(each));
      PENSTOCK_RETURN_IF_ERROR(ExpectSameRows(moved, each));
    }
    if (passed.empty()) return absl::OkStatus();  // It is there already.
    GoPast(moved, passed, is_up);
    Relink(moved, passed, is_up);
    return absl::OkStatus();
  }

 private:
  std::string NameOf(int place) const {
    return place < static_cast<int>(measured_.size())
               ? absl::StrCat("\"", measured_[place].name, "\"")
               : "the end";
  }

  absl::Status Refused(int place, absl::string_view why) const {
    return absl::InvalidArgumentError(
        absl::StrCat("what if: ", NameOf(place), " ", why));
  }

  absl::Status NoChain(int moved, int before) const {
    return Refused(
        moved, absl::StrCat("must have one chain of transformations between "
                            "itself and ",
                            NameOf(before), "; there is none"));
  }

  absl::Status ExpectOneInput(int place) const {
    const size_t inputs = model_.nodes[place].inputs.size();
    if (inputs == 1 && model_.nodes[place].inside < 0) return absl::OkStatus();
    if (model_.nodes[place].inside >= 0) {
      return Refused(place, absl::StrCat("is inside the function of ",
                                         NameOf(model_.nodes[place].inside),
                                         " and cannot be moved past"));
    }
    return Refused(place,
                   absl::StrCat("must have one input to be moved, or to be "
                                "moved past; it has ",
                                inputs));
  }

  // Of whoever is passed: all that it gives goes through the chain.
  absl::Status ExpectOneUser(int place, int moved, int before) const {
    if (users_[place].size() <= 1) return absl::OkStatus();
    return NoChain(moved, before);
  }

  absl::Status ExpectComputed(int place) const {
    const bool is_kept = model_.nodes[place].is_cached ||
                         measured_[place].has_cache ||
                         measured_[place].op == plan::Node::kCache;
    if (!is_kept) return absl::OkStatus();
    return Refused(place,
                   "has rows that are kept, or is below some that are: what "
                   "they would cost elsewhere was not seen");
  }

  absl::Status ExpectSameRows(int moved, int passed) const {
    const bool regroups = Regroups(measured_[passed].op);
    if (!regroups && !Regroups(measured_[moved].op)) return absl::OkStatus();
    // Of a row for each row, the other sees as much either way.
    const int other = regroups ? moved : passed;
    if (!plan::FactsOf(measured_[other].op).changes_count) {
      return absl::OkStatus();
    }
    return Refused(moved, absl::StrCat("cannot be moved past ", NameOf(passed),
                                       ": they would have other rows"));
  }

  int LastBefore(int before) const {
    if (before >= static_cast<int>(model_.nodes.size())) return before - 1;
    const std::vector<int>& inputs = model_.nodes[before].inputs;
    return inputs.size() == 1 ? inputs[0] : -1;
  }

  double RowsInto(int place) const {
    return model_.nodes[model_.nodes[place].inputs[0]].visits;
  }

  // Rows that it gives for one.
  double Selectivity(int place) const {
    const double in = RowsInto(place);
    return in > 0 && model_.nodes[place].visits > 0
               ? model_.nodes[place].visits / in
               : 1;
  }

  double Growth(int place) const {
    const double in = measured_[model_.nodes[place].inputs[0]].row_bytes;
    return in > 0 && measured_[place].row_bytes > 0
               ? measured_[place].row_bytes / in
               : 1;
  }

  // What one node does to the rows of another that it changes places with.
  struct Factors {
    double rows = 1;
    double bytes = 1;  // of a row
    double work = 1;   // of a function: what is regrouped is as much as before
  };

  Factors FactorsOf(int place) const {
    const double rows = Selectivity(place);
    return {rows, Growth(place), Regroups(measured_[place].op) ? 1 : rows};
  }

  static Factors Inverse(const Factors& factors) {
    return {1 / factors.rows, 1 / factors.bytes, 1 / factors.work};
  }

  void Change(int place, const Factors& by, std::vector<Measured>& measured) {
    NodeModel& node = model_.nodes[place];
    const double work =
        CostsByBytes(measured[place].op) ? by.rows * by.bytes : by.work;
    Scale(node.busy, work);
    Scale(node.cpu, work);
    node.visits *= by.rows;
    node.chunks *= std::min(by.work, 1.0);
    measured[place].rows *= by.rows;
    measured[place].row_bytes *= by.bytes;
    measured[place].largest_row_bytes *= by.bytes;
  }

  void GoPast(int moved, const std::vector<int>& passed, bool is_up) {
    const Factors own = FactorsOf(moved);
    Factors theirs;
    for (int each : passed) {
      const Factors factors = FactorsOf(each);
      theirs.rows *= factors.rows;
      theirs.bytes *= factors.bytes;
      theirs.work *= factors.work;
    }
    std::vector<Measured> measured = measured_;
    for (int each : passed) {
      Change(each, is_up ? own : Inverse(own), measured);
    }
    Change(moved, is_up ? Inverse(theirs) : theirs, measured);
    model_.measured =
        std::make_shared<const std::vector<Measured>>(std::move(measured));
  }

  // Puts it before or after those that it went past, in the order of places,
  // too.
  void Relink(int moved, const std::vector<int>& passed, bool is_up) {
    const int first = passed.front();
    const int last = passed.back();
    const int source = model_.nodes[is_up ? first : moved].inputs[0];
    const int above = is_up ? moved : last;  // whose users read the chain
    for (NodeModel& node : model_.nodes) {
      for (int& input : node.inputs) {
        if (input == above) input = is_up ? last : moved;
      }
    }
    model_.nodes[first].inputs[0] = is_up ? moved : source;
    model_.nodes[moved].inputs[0] = is_up ? source : last;
    GiveStages(moved, passed, source, is_up);

    const int old_root = static_cast<int>(model_.nodes.size()) - 1;
    std::vector<int> order;  // new place -> old
    for (int i = 0; i <= old_root; ++i) {
      if (i == moved) continue;
      if (is_up && i == first) order.push_back(moved);
      order.push_back(i);
      if (!is_up && i == last) order.push_back(moved);
    }
    if (moved == old_root) {  // What nobody needs may lie between.
      order.erase(std::find(order.begin(), order.end(), last));
      order.push_back(last);
    }
    std::vector<int> now(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      now[order[i]] = static_cast<int>(i);
    }
    std::vector<NodeModel> nodes;
    std::vector<Measured> measured;
    absl::flat_hash_map<uint32_t, int> places;
    for (int old : order) {
      nodes.push_back(std::move(model_.nodes[old]));
      for (int& input : nodes.back().inputs) input = now[input];
      if (nodes.back().inside >= 0) {
        nodes.back().inside = now[nodes.back().inside];
      }
      measured.push_back((*model_.measured)[old]);
      places[measured.back().id] = static_cast<int>(measured.size()) - 1;
    }
    model_.nodes = std::move(nodes);
    model_.measured =
        std::make_shared<const std::vector<Measured>>(std::move(measured));
    model_.places = std::make_shared<const absl::flat_hash_map<uint32_t, int>>(
        std::move(places));
  }

  // Who pulls whom: a buffer is filled by a task of its own, which runs what is
  // below it.
  void GiveStages(int moved, const std::vector<int>& passed, int source,
                  bool is_up) {
    using Stage = std::optional<uint32_t>;
    NodeModel& node = model_.nodes[moved];
    const Stage above = node.stage;
    const Stage below = model_.nodes[is_up ? passed.back() : source].stage;
    node.stage = model_.nodes[is_up ? source : passed.back()].stage;
    if (node.buffer_rows <= 0) return;
    // Those that it went past were on its other side.
    const Stage from = is_up ? below : above;
    const Stage to = is_up ? above : below;
    if (is_up && node.stage == from) node.stage = to;
    for (int each : passed) {
      Stage& stage = model_.nodes[each].stage;
      if (stage == from) stage = to;
    }
  }

  Model& model_;
  const std::vector<Measured> measured_;  // as it was
  std::vector<std::vector<int>> users_;
};

}  // namespace

absl::Status Move(Model& model, int node, std::optional<int> before) {
  const int end = static_cast<int>(model.nodes.size());
  return Mover(model).Run(node, before.value_or(end));
}

}  // namespace penstock::tuner
