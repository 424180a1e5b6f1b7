// What a pass is given: the place where it may act, and what is known of the
// plan around it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "penstock/plan/rewrite/draft.h"
#include "penstock/plan/rewrite/rewrite.h"

namespace penstock::plan {

// Of a plan as a whole. No pass changes them.
struct PlanFacts {
  // Random values depend on where rows come from: what mixes lineages anew
  // must stay.
  bool uses_lineage = false;
  // The user's Python sees rows being computed, and how early.
  bool is_seen = false;
};

PlanFacts FindPlanFacts(const Draft& draft);

class PassContext final {
 public:
  PassContext(const char* pass, const RewriteOptions& options, PlanFacts facts,
              std::vector<Remark>* applied, std::vector<Remark>* declined)
      : pass_(pass),
        options_(options),
        facts_(facts),
        applied_(applied),
        declined_(declined) {}

  const RewriteOptions& options() const { return options_; }
  const PlanFacts& facts() const { return facts_; }

  // Of what is about to be done; the nodes are still there.
  Remark Note(const Draft& draft, absl::Span<const int> ids,
              std::string why) const;
  // True, so that a pass ends with it.
  bool Applied(Remark remark);
  // False. Said once.
  bool Declined(Remark remark);

  // What was measured after the node; nodes that hand rows on as they are have
  // what is below them. Unset: nothing, and the spec does not say.
  std::optional<double> RowBytes(const Draft& draft, int id) const;

 private:
  const char* const pass_;
  const RewriteOptions& options_;
  const PlanFacts facts_;
  std::vector<Remark>* const applied_;
  std::vector<Remark>* const declined_;
};

// Acts at the node, if it can: true if the draft has changed.
using TryAt = bool (*)(Draft& draft, int id, PassContext& context);

// The function of a native map, else null.
const Function* NativeMapOf(const Node& node);
// The predicate of a native filter, else null.
const Function* NativePredicateOf(const Node& node);

// A function of the node as it is to be part of another node's.
Function NamedFunction(const Draft& draft, int id, Function function);

// Whether a row after the node may be an error.
bool MayGiveErrors(const Draft& draft, int id);

// How many rows there are for sure; a count that is claimed
// (assert_cardinality) or comes from a file that may hold others is none.
std::optional<int64_t> ProvenRows(const Draft& draft, int id);

// Every shape is known and every component a tensor: rows are sure to stack,
// and to be the same when taken apart again.
bool StacksExactly(const penstock::ElementSpec& spec);

// The value, if it is a constant integer.
std::optional<int64_t> ConstantInt(const Value& value);

}  // namespace penstock::plan
