// Rewriting a plan: other nodes, the same rows.
//
// A rewritten plan gives the same elements in the same order (where an order is
// promised), the same errors at the same places and with the same words, and
// the same random numbers; its root has the same spec and cardinality (which
// may be known where it was not). What differs is what it costs.
//
// Its nodes keep their keys and names (Node.key, Node.name), so that randomness
// and messages do not change. Its fingerprint is its own: a state is saved with
// the fingerprint of the plan that ran, and fits that plan alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/plan.pb.h"
#include "penstock/snapshot.pb.h"

namespace penstock::plan {

// What a run has shown of a node.
struct MeasuredRows {
  double rows = 0;
  double row_bytes = 0;  // mean
};

struct RewriteOptions {
  // Names of passes; unset: all. What is in `without` is left out.
  std::optional<std::vector<std::string>> only;
  std::vector<std::string> without;
  // Rows that a filter drops need not be computed first, even if that would
  // have been an error: such errors are then not seen.
  bool may_hide_errors = false;
  // Of what comes after the plan: random values there depend on lineages; the
  // user's Python sees rows there, and how early.
  bool uses_lineage_later = false;
  bool is_seen_later = false;
  // By the node's name; empty: nothing was measured.
  absl::flat_hash_map<std::string, MeasuredRows> measured;
};

// What a snapshot says of each node.
absl::flat_hash_map<std::string, MeasuredRows> MeasuredOf(
    const Snapshot& snapshot);

// A node as its user knows it.
struct NodeRef {
  std::string name;
  Location made_at;
};

// One change, or one that was not made though a person might expect it.
struct Remark {
  std::string pass;
  std::vector<NodeRef> nodes;  // as they were before
  std::string why;             // one sentence
};

// "drop_no_ops: take_2 (train.py:7): all elements are taken"
std::string ToString(const Remark& remark);

struct Rewritten {
  Plan plan;
  std::vector<Remark> applied;
  std::vector<Remark> declined;
};

struct Pass {
  const char* name;
  const char* description;  // one line
  bool saves_memory;        // less is held at once, however fast that is
};

// In the order in which they are tried: each once those before it find nothing
// more to change, again and again until none does.
absl::Span<const Pass> AllPasses();

// Datasets that functions make are rewritten, too. InvalidArgument for names
// that are no passes, and for plans that are not valid. If nothing was applied,
// the plan is `plan`.
absl::StatusOr<Rewritten> Rewrite(const Plan& plan,
                                  const RewriteOptions& options = {});

}  // namespace penstock::plan
