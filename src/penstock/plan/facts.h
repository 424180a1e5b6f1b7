// What may be done with a node without anyone seeing it, by its kind.
#pragma once

#include "penstock/plan.pb.h"

namespace penstock::plan {

// Of a kind of operator, whatever its function does.
struct Facts {
  bool is_pure = false;  // same inputs, same rows, in every epoch
  bool draws = false;    // may give other rows or another order in each epoch
  bool is_stateful = false;  // a row depends on those before it
  bool is_order_sensitive = false;
  bool changes_count = false;
};

// The table. Unknown operators are nothing at all: not pure.
Facts FactsOf(Node::OpCase op);

}  // namespace penstock::plan
