// What may be done with a node without anyone seeing it: facts about each kind
// of operator, and what follows for caches.
#pragma once

#include <string>
#include <vector>

#include "penstock/plan.pb.h"
#include "penstock/tuner/model.h"

namespace penstock::tuner {

// Of a kind of operator, whatever its function does.
struct Facts {
  bool is_pure = false;  // same inputs, same rows, in every epoch
  bool draws = false;    // may give other rows or another order in each epoch
  bool is_stateful = false;  // a row depends on those before it
  bool is_order_sensitive = false;
  bool changes_count = false;
};

// The table. Unknown operators are nothing at all: not pure.
Facts FactsOf(plan::Node::OpCase op);

struct CacheLegality {
  bool is_legal = false;
  std::string why;  // one sentence, of a cache that is not legal
};

// May a cache stand after each node of the model? By place.
std::vector<CacheLegality> FindCacheLegality(const Model& model);

// What is wrong with the caches that the plan has: one that keeps what was
// drawn, or is never filled to its end.
std::vector<std::string> FindCacheFaults(const Model& model);

}  // namespace penstock::tuner
