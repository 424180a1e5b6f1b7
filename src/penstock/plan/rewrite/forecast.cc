#include "penstock/plan/rewrite/forecast.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/print.h"
#include "penstock/plan/rewrite/function_facts.h"

namespace penstock::plan {
namespace {

// A part of a node that was cut in two has a suffix.
std::string BaseOf(const std::string& name) {
  return name.substr(0, name.find(':'));
}

// A projection that a pass added: it only leaves columns out.
bool IsFree(const std::string& name) {
  return absl::EndsWith(name, ":columns");
}

bool GivesOneForOne(uint32_t op) {
  return op == Node::kMap || op == Node::kShuffle || op == Node::kPrefetch ||
         op == Node::kEnumerate;
}

// Whether rows go through as they are.
bool HandsOn(uint32_t op) {
  switch (op) {
    case Node::kFilter:
    case Node::kShuffle:
    case Node::kRepeat:
    case Node::kTake:
    case Node::kSkip:
    case Node::kTakeWhile:
    case Node::kShard:
    case Node::kPrefetch:
    case Node::kIgnoreErrors:
      return true;
    default:
      return false;
  }
}

// What the plan says of a node beyond its description.
struct Facts {
  std::vector<std::string> parts;  // the nodes whose work it does
  std::optional<int64_t> row_bytes;
};

using FactsByName = absl::flat_hash_map<std::string, Facts>;

void FindFacts(const Plan& plan, const std::string& prefix, FactsByName& all) {
  for (int i = 0; i < plan.nodes_size(); ++i) {
    const Node& node = plan.nodes(i);
    const std::string name = prefix + NodeName(plan, i);
    Facts& facts = all[name];
    for (const Function* function : FunctionsOf(node)) {
      for (const Function::Origin& origin : function->origins()) {
        facts.parts.push_back(origin.node());
      }
      if (function->has_dataset()) {
        FindFacts(function->dataset(), absl::StrCat(name, "/"), all);
      }
    }
    // Of several, it is one itself.
    if (facts.parts.empty()) facts.parts.push_back(name);
    // All that it computed has gone.
    if (node.has_map() && IsNative(node.map().function()) &&
        !HasCalls(node.map().function())) {
      facts.parts.clear();
    }
    const auto spec = FromProto(node.output());
    if (spec.ok()) facts.row_bytes = RowBytes(spec->Flatten());
  }
}

// Rows and bytes of a node while it was watched.
struct Flow {
  double in = 0;
  double rows = 0;
  double row_bytes = 0;
};

class Forecaster final {
 public:
  Forecaster(absl::Span<const Snapshot> seen, const Planned& planned)
      : seen_(seen), planned_(planned) {
    FindFacts(*planned.plan, "", facts_);
    const Snapshot& last = seen.back();
    for (int i = 0; i < last.nodes_size(); ++i) {
      places_[last.nodes(i).name()] = i;
      ids_[last.nodes(i).node()] = i;
    }
    for (int i = 0; i < last.nodes_size(); ++i) before_.push_back(FlowOf(i));
    for (const Snapshot::Node& node : planned.nodes) {
      for (const std::string& part : PartsOf(node)) ++shares_[BaseOf(part)];
    }
    for (const Snapshot::Node& node : planned.nodes) Add(node);
  }

  std::vector<Snapshot> Run() const {
    std::vector<Snapshot> made;
    uint64_t cpu = 0;
    for (const Snapshot& snapshot : seen_) {
      made.push_back(Of(snapshot));
      // Nodes and process are not read at one moment: the difference of the two
      // may fall for a moment, as no total does.
      cpu = std::max(cpu, made.back().process().engine_cpu_ns());
      made.back().mutable_process()->set_engine_cpu_ns(cpu);
    }
    return made;
  }

 private:
  // How a planned node's counters follow from those of nodes that were seen.
  struct Rule {
    int like = -1;     // the place of the node that it was; -1: none
    double rows = 1;   // times those of `like`
    double bytes = 1;  // of a row, times
    std::vector<std::pair<int, double>> work;  // places, times
  };

  Flow FlowOf(int place) const {
    const auto since = [&](int i, auto field) {
      const auto now = static_cast<double>(field(seen_.back().nodes(i)));
      const Snapshot& first = seen_.front();
      if (seen_.size() < 2 || first.nodes_size() != seen_.back().nodes_size()) {
        return now;
      }
      const double then = static_cast<double>(field(first.nodes(i)));
      return now > then ? now - then : now;
    };
    const auto rows = [](const Snapshot::Node& node) { return node.rows(); };
    const auto bytes = [](const Snapshot::Node& node) { return node.bytes(); };
    Flow flow;
    flow.rows = since(place, rows);
    if (flow.rows > 0) flow.row_bytes = since(place, bytes) / flow.rows;
    for (uint32_t input : seen_.back().nodes(place).inputs()) {
      const auto found = ids_.find(input);
      if (found != ids_.end()) flow.in += since(found->second, rows);
    }
    if (seen_.back().nodes(place).inputs().empty()) flow.in = flow.rows;
    return flow;
  }

  std::optional<int> Find(const std::string& name) const {
    const auto found = places_.find(BaseOf(name));
    if (found == places_.end()) return std::nullopt;
    return found->second;
  }

  // Those whose work counts: what a filter does of a map before it is small.
  std::vector<std::string> PartsOf(const Snapshot::Node& node) {
    std::vector<std::string> parts;
    for (const std::string& part : facts_[node.name()].parts) {
      const std::optional<int> place = Find(part);
      if (!place.has_value() || IsFree(part)) continue;
      const bool is_of_map = seen_.back().nodes(*place).op() == Node::kMap;
      if (node.op() != Node::kFilter || !is_of_map) parts.push_back(part);
    }
    return parts;
  }

  void Add(const Snapshot::Node& node) {
    Rule rule;
    Flow flow;
    double input_bytes = 0;
    for (uint32_t input : node.inputs()) {
      flow.in += flows_[input].rows;
      input_bytes = flows_[input].row_bytes;
    }
    const std::optional<int> like = Find(node.name());
    if (!like.has_value()) {
      flow.rows = flow.in;
      flow.row_bytes = input_bytes;
    } else {
      rule.like = *like;
      const Flow& was = before_[*like];
      if (node.inputs().empty()) {
        // In a function: as often as the node that it is in is asked.
        const auto outer = outer_.find(node.inside());
        const bool is_less = node.has_inside() && outer != outer_.end();
        flow.in = was.in * (is_less ? outer->second : 1);
      }
      const bool is_even =
          GivesOneForOne(node.op()) || was.in <= 0 || IsFree(node.name());
      flow.rows = is_even ? flow.in : flow.in * was.rows / was.in;
      const std::optional<int64_t> known = facts_[node.name()].row_bytes;
      flow.row_bytes = was.row_bytes;
      if (known.has_value()) flow.row_bytes = static_cast<double>(*known);
      if (HandsOn(node.op()) && !node.inputs().empty()) {
        flow.row_bytes = input_bytes;
      }
      rule.rows = was.rows > 0 ? flow.rows / was.rows : 1;
      rule.bytes =
          was.row_bytes > 0 ? rule.rows * flow.row_bytes / was.row_bytes : 1;
    }
    for (const std::string& part : PartsOf(node)) {
      const std::optional<int> place = Find(part);
      const Flow& was = before_[*place];
      double less = was.in > 0 ? std::min(1.0, flow.in / was.in) : 1;
      if (node.op() == Node::kShuffle && was.row_bytes > 0) {
        less *= std::min(1.0, flow.row_bytes / was.row_bytes);  // it copies
      }
      rule.work.emplace_back(*place, less / shares_[BaseOf(part)]);
      if (place == like) outer_[node.node()] = less;
    }
    flows_[node.node()] = flow;
    rules_.push_back(std::move(rule));
  }

  Snapshot Of(const Snapshot& snapshot) const {
    Snapshot made = snapshot;
    made.set_fingerprint(planned_.fingerprint);
    made.set_root(planned_.root);
    made.clear_nodes();
    made.mutable_knobs()->clear_nodes();
    double charged = 0;
    for (const Snapshot::Node& node : snapshot.nodes()) {
      charged -= static_cast<double>(node.cpu_ns() + node.io_cpu_ns());
    }
    for (size_t i = 0; i < planned_.nodes.size(); ++i) {
      Snapshot::Node& node = *made.add_nodes();
      node = Counted(snapshot, i);
      charged += static_cast<double>(node.cpu_ns() + node.io_cpu_ns());
      const int like = rules_[i].like;
      if (like < 0) continue;
      const auto knobs =
          snapshot.knobs().nodes().find(snapshot.nodes(like).node());
      if (knobs != snapshot.knobs().nodes().end()) {
        (*made.mutable_knobs()->mutable_nodes())[node.node()] = knobs->second;
      }
    }
    const auto cpu = static_cast<double>(snapshot.process().engine_cpu_ns());
    made.mutable_process()->set_engine_cpu_ns(
        static_cast<uint64_t>(std::max(0.0, cpu + charged)));
    return made;
  }

  // The node whose tasks a node of this rule has: of maps that became one, the
  // costliest. A cheap one's chunks may not have been worth handing over.
  static const Snapshot::Node& TasksLike(const Snapshot& snapshot,
                                         const Rule& rule) {
    const Snapshot::Node* costliest = &snapshot.nodes(rule.like);
    if (costliest->op() != Node::kMap) return *costliest;
    double most = -1;
    for (const auto& [place, factor] : rule.work) {
      const Snapshot::Node& part = snapshot.nodes(place);
      const double work = factor * static_cast<double>(part.self_ns());
      if (part.op() != Node::kMap || work <= most) continue;
      most = work;
      costliest = &part;
    }
    return *costliest;
  }

  Snapshot::Node Counted(const Snapshot& snapshot, size_t number) const {
    const Rule& rule = rules_[number];
    const Snapshot::Node& planned = planned_.nodes[number];
    Snapshot::Node node = planned;
    if (snapshot.process().has_unattributed_cpu_ns()) node.set_cpu_ns(0);
    const auto times = [](double factor, uint64_t value) {
      return static_cast<uint64_t>(factor * static_cast<double>(value));
    };
    if (rule.like >= 0) {
      const Snapshot::Node& like = snapshot.nodes(rule.like);
      const Snapshot::Node& tasks = TasksLike(snapshot, rule);
      node.set_parallelism(tasks.parallelism());
      node.set_rows(times(rule.rows, like.rows()));
      node.set_chunks(times(std::min(1.0, rule.rows), like.chunks()));
      node.set_bytes(times(rule.bytes, like.bytes()));
      node.set_largest_row_bytes(like.largest_row_bytes());
      if (tasks.has_max_parallelism()) {
        node.set_max_parallelism(tasks.max_parallelism());
      }
      if (like.has_read_depth()) node.set_read_depth(like.read_depth());
      if (like.has_queue()) *node.mutable_queue() = like.queue();
      if (like.has_cache()) *node.mutable_cache() = like.cache();
      if (like.has_files()) *node.mutable_files() = like.files();
      *node.mutable_service_ns() = like.service_ns();
      *node.mutable_row_bytes() = like.row_bytes();
    }
    for (const auto& [place, factor] : rule.work) {
      const Snapshot::Node& part = snapshot.nodes(place);
      node.set_self_ns(node.self_ns() + times(factor, part.self_ns()));
      if (part.has_cpu_ns()) {
        node.set_cpu_ns(node.cpu_ns() + times(factor, part.cpu_ns()));
      }
      node.set_python_ns(node.python_ns() + times(factor, part.python_ns()));
      node.set_io_bytes(node.io_bytes() + times(factor, part.io_bytes()));
      node.set_io_ops(node.io_ops() + times(factor, part.io_ops()));
      node.set_io_ns(node.io_ns() + times(factor, part.io_ns()));
      node.set_io_cpu_ns(node.io_cpu_ns() + times(factor, part.io_cpu_ns()));
      node.set_held_file_bytes(node.held_file_bytes() +
                               times(factor, part.held_file_bytes()));
      if (part.has_active_task_ns()) {
        node.set_active_task_ns(node.active_task_ns() +
                                factor * part.active_task_ns());
      }
    }
    if (planned.node() == planned_.root) {
      const auto root = ids_.find(snapshot.root());
      if (root != ids_.end()) {
        node.set_rows(snapshot.nodes(root->second).rows());
      }
    }
    return node;
  }

  const absl::Span<const Snapshot> seen_;
  const Planned& planned_;
  FactsByName facts_;
  absl::flat_hash_map<std::string, int> places_;  // of what was seen
  absl::flat_hash_map<uint32_t, int> ids_;
  std::vector<Flow> before_;                      // by place
  absl::flat_hash_map<std::string, int> shares_;  // nodes that one became
  absl::flat_hash_map<uint32_t, Flow> flows_;     // of planned ones
  absl::flat_hash_map<uint32_t, double> outer_;   // of nodes with functions
  std::vector<Rule> rules_;
};

}  // namespace

std::vector<Snapshot> Forecast(absl::Span<const Snapshot> seen,
                               const Planned& planned) {
  // A run has the same nodes in all; a file may hold anything.
  while (!seen.empty() &&
         seen.front().nodes_size() != seen.back().nodes_size()) {
    seen.remove_prefix(1);
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].nodes_size() != seen.back().nodes_size()) return {};
  }
  if (seen.empty()) return {};
  return Forecaster(seen, planned).Run();
}

}  // namespace penstock::plan
