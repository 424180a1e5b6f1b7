// Where a cache pays, if anywhere.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "penstock/tuner/model.h"
#include "penstock/tuner/what_if.h"

namespace penstock::tuner {

struct CacheRoom {
  double memory_bytes = 0;
  double disk_bytes = 0;
};

// What was thought about a cache after one node.
struct CacheCandidate {
  int node = -1;  // place
  bool is_legal = false;
  std::string why_not;    // of one that is not legal, or whose size is unknown
  double size_bytes = 0;  // the upper end of its estimate
  // The better of memory and disk, where there is room for a part at least.
  std::optional<CacheAfter> cache;
  Interval rate;  // with it, other knobs as good as they can be
  // The same with all of it, or what there is room for, on disk.
  std::optional<double> rate_on_disk;
};

struct CachePlan {
  std::optional<CacheCandidate> best;  // raises X by at least 5 %
  // In the other tier, after another node: both together raise X by 5 % more.
  std::optional<CacheCandidate> second;
  std::vector<CacheCandidate> candidates;  // all that were looked at
};

// Legal places only, the upper end of each size against the room. Of what is
// within 1 % of the fastest, the smallest in memory. Looks at the 64 nodes
// that save most; a run of nodes with rows of one size has its last looked at.
// Of pairs, one in memory and one on disk, those of the 8 that save most.
CachePlan PlaceCache(const Model& model, const CacheRoom& room);

}  // namespace penstock::tuner
