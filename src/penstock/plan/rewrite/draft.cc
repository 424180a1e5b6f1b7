#include "penstock/plan/rewrite/draft.h"

#include <algorithm>
#include <map>
#include <utility>

#include "google/protobuf/util/message_differencer.h"
#include "penstock/base/status.h"
#include "penstock/plan/cardinality.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/print.h"

namespace penstock::plan {
namespace {

using google::protobuf::util::MessageDifferencer;

// A cache in a file is read again by a plan of its own: the file, its records,
// and the rows of each.
constexpr uint64_t kKeysOfFileCache = 3;

std::vector<bool> Used(const Plan& plan) {
  std::vector<bool> used(plan.nodes_size(), false);
  if (!used.empty()) used.back() = true;
  for (int i = plan.nodes_size() - 1; i >= 0; --i) {
    if (!used[i]) continue;
    for (uint32_t input : plan.nodes(i).inputs()) used[input] = true;
  }
  return used;
}

// The key of the last node, as KeysOf() counts.
uint64_t Count(const Plan& plan, uint64_t key, std::vector<uint64_t>* keys) {
  const std::vector<bool> used = Used(plan);
  for (int i = 0; i < plan.nodes_size(); ++i) {
    const Node& node = plan.nodes(i);
    const bool has_key = used[i] && !node.has_with_options();
    if (has_key && node.has_key()) {
      key = node.key();
    } else if (has_key && !node.has_prefetch()) {
      ++key;
    }
    if (keys != nullptr) keys->push_back(key);
    if (!has_key) continue;
    if (node.has_cache() && !node.cache().filename().empty()) {
      key += kKeysOfFileCache;
    }
    const Function* function = DatasetFunctionOf(node);
    if (function != nullptr && function->has_dataset()) {
      key = Count(function->dataset(), key, nullptr);
    }
  }
  return key;
}

}  // namespace

Node Like(const Node& node) {
  Node like;
  *like.mutable_made_at() = node.made_at();
  if (node.has_key()) like.set_key(node.key());
  if (node.has_instance()) like.set_instance(node.instance());
  like.set_name(node.name());
  return like;
}

std::vector<uint64_t> KeysOf(const Plan& plan, uint64_t key_before) {
  std::vector<uint64_t> keys;
  Count(plan, key_before, &keys);
  return keys;
}

absl::StatusOr<Draft> Draft::Make(const Plan& plan, std::string prefix,
                                  uint64_t key_before) {
  Draft draft;
  draft.prefix_ = std::move(prefix);
  draft.key_before_ = key_before;
  for (const TensorSpec& bound : plan.bound()) {
    draft.bound_messages_.push_back(bound);
    PENSTOCK_ASSIGN_OR_RETURN(draft.bound_.emplace_back(), FromProto(bound));
  }
  const std::vector<uint64_t> keys = KeysOf(plan, key_before);
  for (int i = 0; i < plan.nodes_size(); ++i) {
    Entry& entry = draft.nodes_.emplace_back();
    entry.node = plan.nodes(i);
    if (!entry.node.has_with_options()) entry.node.set_key(keys[i]);
    entry.node.set_name(NodeName(plan, i));
    PENSTOCK_ASSIGN_OR_RETURN(entry.spec, FromProto(entry.node.output()));
  }
  if (draft.nodes_.empty()) {
    return absl::InvalidArgumentError("a plan must have a node; got none");
  }
  draft.root_ = draft.size() - 1;
  draft.Retain(draft.root_);
  return draft;
}

int Draft::OnlyUser(int id) const {
  const std::vector<int>& users = nodes_[id].users;
  return users.size() == 1 && id != root_ ? users[0] : -1;
}

// Without recursion: chains are long.
std::vector<int> Draft::Order() const {
  std::vector<int> order;
  std::vector<bool> is_seen(nodes_.size(), false);
  std::vector<std::pair<int, int>> open = {{root_, 0}};  // node, next input
  is_seen[root_] = true;
  while (!open.empty()) {
    auto& [id, next] = open.back();
    if (next == node(id).inputs_size()) {
      order.push_back(id);
      open.pop_back();
      continue;
    }
    const int below = input(id, next++);
    if (!is_seen[below]) {
      is_seen[below] = true;
      open.emplace_back(below, 0);
    }
  }
  return order;
}

absl::StatusOr<int> Draft::Add(Node node, std::vector<int> inputs) {
  std::vector<penstock::ElementSpec> specs;
  std::vector<Cardinality> cardinalities;
  node.clear_inputs();
  for (int input : inputs) {
    node.add_inputs(static_cast<uint32_t>(input));
    specs.push_back(spec(input));
    cardinalities.push_back(this->node(input).cardinality());
  }
  Entry entry;
  PENSTOCK_ASSIGN_OR_RETURN(
      entry.spec, InferOutput(node, {.inputs = specs, .bound = bound_}));
  *node.mutable_output() = ToProto(entry.spec);
  *node.mutable_cardinality() =
      InferCardinality(node, cardinalities, specs, bound_);
  entry.node = std::move(node);
  nodes_.push_back(std::move(entry));
  return size() - 1;
}

void Draft::Retain(int id) {
  std::vector<int> todo = {id};
  while (!todo.empty()) {
    const int at = todo.back();
    todo.pop_back();
    if (nodes_[at].is_live) continue;
    nodes_[at].is_live = true;
    for (uint32_t input : node(at).inputs()) {
      nodes_[input].users.push_back(at);
      todo.push_back(static_cast<int>(input));
    }
  }
}

void Draft::Release(int id) {
  std::vector<int> todo = {id};
  while (!todo.empty()) {
    const int at = todo.back();
    todo.pop_back();
    if (!nodes_[at].is_live || !nodes_[at].users.empty() || at == root_) {
      continue;
    }
    nodes_[at].is_live = false;
    for (uint32_t input : node(at).inputs()) {
      std::vector<int>& users = nodes_[input].users;
      users.erase(std::find(users.begin(), users.end(), at));
      todo.push_back(static_cast<int>(input));
    }
  }
}

bool Draft::Refine(int id, const Cardinality& known) {
  std::map<int, Cardinality> refined = {{id, known}};
  for (int at : Order()) {
    const Node& node = this->node(at);
    std::vector<Cardinality> inputs;
    std::vector<penstock::ElementSpec> specs;
    bool is_touched = false;
    for (uint32_t input : node.inputs()) {
      const auto found = refined.find(static_cast<int>(input));
      is_touched |= found != refined.end();
      inputs.push_back(found != refined.end()
                           ? found->second
                           : nodes_[input].node.cardinality());
      specs.push_back(nodes_[input].spec);
    }
    if (!is_touched || at == id) continue;
    if (node.has_cache()) return false;
    refined[at] = InferCardinality(node, inputs, specs, bound_);
  }
  for (auto& [at, cardinality] : refined) {
    *nodes_[at].node.mutable_cardinality() = std::move(cardinality);
  }
  return true;
}

bool Draft::Replace(int old, int by) {
  if (old == by || !nodes_[old].is_live) return false;
  // The messages, not the specs: these do not look at the order of a dict's
  // keys, which users do.
  if (!MessageDifferencer::Equals(node(old).output(), node(by).output())) {
    return false;
  }
  const Cardinality& known = node(by).cardinality();
  if (!(node(old).cardinality() == known) &&
      !(node(old).cardinality().has_unknown() && Refine(old, known))) {
    return false;
  }
  Retain(by);
  // `by` may itself read `old`: that input stays.
  std::vector<int> kept;
  for (int user : std::exchange(nodes_[old].users, {})) {
    if (user == by) {
      kept.push_back(user);
      continue;
    }
    for (uint32_t& input : *nodes_[user].node.mutable_inputs()) {
      if (input == static_cast<uint32_t>(old)) {
        input = static_cast<uint32_t>(by);
        nodes_[by].users.push_back(user);
        break;  // once for each entry of `users`
      }
    }
  }
  nodes_[old].users = std::move(kept);
  if (root_ == old) root_ = by;
  Release(old);
  return true;
}

void Draft::SetRoot(int id) {
  root_ = id;
  Retain(id);
}

Plan Draft::Finish() const {
  Plan plan;
  std::vector<uint32_t> numbers(nodes_.size());
  for (int id : Order()) {
    numbers[id] = static_cast<uint32_t>(plan.nodes_size());
    Node& node = *plan.add_nodes() = this->node(id);
    for (uint32_t& input : *node.mutable_inputs()) input = numbers[input];
  }
  for (const TensorSpec& bound : bound_messages_) *plan.add_bound() = bound;

  Plan bare = plan;
  for (Node& node : *bare.mutable_nodes()) {
    node.clear_key();
    node.clear_name();
  }
  const std::vector<uint64_t> keys = KeysOf(bare, key_before_);
  bool has_same_keys = true;
  bool has_same_names = true;
  for (int i = 0; i < plan.nodes_size(); ++i) {
    const Node& node = plan.nodes(i);
    has_same_keys &= !node.has_key() || node.key() == keys[i];
    has_same_names &= node.name() == NodeName(bare, i);
  }
  for (Node& node : *plan.mutable_nodes()) {
    if (has_same_keys) node.clear_key();
    if (has_same_names) node.clear_name();
  }
  return plan;
}

}  // namespace penstock::plan
