// A plan while it is rewritten: nodes that can be replaced, with specs and
// cardinalities always right.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/spec.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// Nodes have ids that never change; a replaced node stays, out of reach. An
// edit adds nodes, then lets one of them replace an old one: what does not work
// out is simply left where nothing leads to it. Not thread-safe.
class Draft final {
 public:
  // Every node gets the key and the name that it has in a run of `plan` (unless
  // it has them already), so that moving it changes neither. Of the dataset of
  // a function: `prefix` is what its nodes' names are led by, and `key_before`
  // the key of the function's node. REQUIRES: the plan is valid.
  static absl::StatusOr<Draft> Make(const Plan& plan, std::string prefix,
                                    uint64_t key_before);

  int size() const { return static_cast<int>(nodes_.size()); }
  const Node& node(int id) const { return nodes_[id].node; }
  int input(int id, int number = 0) const {
    return static_cast<int>(node(id).inputs(number));
  }
  const penstock::ElementSpec& spec(int id) const { return nodes_[id].spec; }
  std::vector<penstock::TensorSpec> leaves(int id) const {
    return spec(id).Flatten();
  }
  const std::vector<penstock::TensorSpec>& bound() const { return bound_; }
  int root() const { return root_; }
  // With the prefix: as errors and snapshots have it.
  std::string name(int id) const { return prefix_ + node(id).name(); }
  const std::string& prefix() const { return prefix_; }
  bool is_inside() const { return !prefix_.empty(); }

  // Whether the root needs it.
  bool is_live(int id) const { return nodes_[id].is_live; }
  // The node that alone reads this one, or -1: there are several, or none.
  int OnlyUser(int id) const;
  // Nodes that the root needs, inputs before users.
  std::vector<int> Order() const;

  // A node over these inputs, which nobody reads yet. What Append() would
  // refuse is an error; nothing of `node` but inputs, output and cardinality is
  // changed.
  absl::StatusOr<int> Add(Node node, std::vector<int> inputs);
  // Lets `by` stand where `old` was. False, and nothing changes, if somebody
  // could tell the two apart by spec or cardinality. Where that of `old` was
  // unknown, it may become known, unless a cache would hear of it: one that
  // knows how many rows there are is full without having seen the end.
  bool Replace(int old, int by);
  // Lets the plan end with this node, which reads what was the root.
  void SetRoot(int id);

  // The plan. Keys and names that would be the same without being said are left
  // out.
  Plan Finish() const;

 private:
  struct Entry {
    Node node;
    penstock::ElementSpec spec;
    std::vector<int> users;  // live ones, once for each input
    bool is_live = false;
  };

  // Works out cardinalities again, now that that of `id` is to be `known`.
  // False if a cache is in the way.
  bool Refine(int id, const Cardinality& known);
  void Retain(int id);
  void Release(int id);

  std::deque<Entry> nodes_;  // references to nodes stay valid
  std::vector<penstock::TensorSpec> bound_;
  std::vector<TensorSpec> bound_messages_;
  std::string prefix_;
  uint64_t key_before_ = 0;
  int root_ = -1;
};

// A node without operator that is otherwise as `node` is: source line, key,
// name and instance.
Node Like(const Node& node);

// The keys that a run gives the nodes of a plan whose own are not set: numbers
// from key_before + 1 on, those of functions' datasets counted with their node.
// Nodes that are not run, and options, have that of the node before.
std::vector<uint64_t> KeysOf(const Plan& plan, uint64_t key_before);

}  // namespace penstock::plan
