// What may be done with a node without anyone seeing it, by its kind.
#pragma once

#include <cstdint>

#include "penstock/plan.pb.h"

namespace penstock::plan {

// What becomes of an operator's rows if those of the source are shared out and
// each share is run by itself (divide.h), beside those of a run of the whole.
enum class InParts : uint8_t {
  // Others: it counts or remembers rows, or joins datasets.
  kWhole,
  // It has the rows that are shared out.
  kSource,
  // The same: a row becomes what it becomes alone.
  kRowWise,
  // The same or others like them: rows are mixed or gathered with those near
  // them, and the end of a share is an end.
  kWindow,
  // The same in other groups, all of one size, if what is left at a share's end
  // is handed on as it is.
  kGroups,
  // The same, pass by pass.
  kPasses,
};

// Of a kind of operator, whatever its function does.
struct Facts {
  bool is_pure = false;  // same inputs, same rows, in every epoch
  bool draws = false;    // may give other rows or another order in each epoch
  bool is_stateful = false;  // a row depends on those before it
  bool is_order_sensitive = false;
  bool changes_count = false;
  InParts in_parts = InParts::kWhole;
  // Rows at the front can be left out without being computed, if those of its
  // inputs can.
  bool seeks = false;
  // Which rows it hands on depends on their places alone.
  bool picks_by_place = false;
};

// The table. Unknown operators are nothing at all: not pure.
Facts FactsOf(Node::OpCase op);

}  // namespace penstock::plan
