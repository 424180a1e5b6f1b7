// Where rows may be kept for later passes without anyone seeing it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/plan.pb.h"

namespace penstock::plan {

struct Keepable {
  // Empty: rows after the node are the same in every pass, and have an end.
  // Else why not, as a sentence for people.
  std::string why_not;
  // Whether that could save work: not after nodes that hand rows on, or make
  // them out of nothing.
  bool is_worthwhile = false;
  // A word for what is below and its fingerprint leaves out: which Python
  // functions, by their contents, and which caches.
  uint64_t functions = 0;
  // Whether there are any: what they call may be another thing tomorrow.
  bool has_python = false;

  bool is_candidate() const { return why_not.empty() && is_worthwhile; }
};

// By place. `is_ordered`: unless a node says otherwise, rows come in order.
std::vector<Keepable> FindKeepable(const Plan& plan, bool is_ordered);

}  // namespace penstock::plan
