// Keep: stands after a node whose rows are the same in every pass, and keeps
// them for later passes while the node's knob says so. Nobody sees it.
//
//   Order        that of the input
//   Cardinality  that of the input
//   Memory       up to keep_bytes, charged to the memory budget; what does not
//                fit is not kept, and what is kept gives way (kept_rows.h).
//                In a directory: one segment that is read or written
//                (kept_disk.h)
//   Threads      one caller at a time; passes of all iterators share the rows
//   Checkpoint   the input's, and nothing of its own: states fit with and
//                without it. The input of a pass that gives kept rows stays
//                behind, and its state is saved as that many rows later. A pass
//                restored from the middle of the input does not know where it
//                is, and only passes rows on to its end
//   Errors       the input's: error rows are not kept but computed again, and
//                the rows around them are kept
//   Knobs        keep_bytes, keeps_on_disk. Set in the middle of a pass, rows
//   are kept from
//                there on, and the next pass keeps the others. Unset, a pass
//                that is giving kept rows goes on until it comes to one that is
//                not; nothing more is kept
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/engine/operator.h"

namespace penstock::engine {

// What the rows after a node are told apart by.
struct KeepSpec {
  // What is computed, and from which captures.
  std::string fingerprint;
  // Of the nodes below, for rows that have a lineage: it depends on them.
  uint64_t keys = 0;
  // Of the nodes below, those that read files: ids.
  std::vector<int> file_ops;
  // Whether another process would compute the same rows for sure.
  bool is_storable = true;
};

// `info`: of the node that `input` is.
OperatorPtr MakeKeep(KeepSpec spec, OperatorPtr input, const OpInfo& info);

}  // namespace penstock::engine
