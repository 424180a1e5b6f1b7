// Where a cache may stand without anyone seeing it.
#pragma once

#include <string>
#include <vector>

#include "penstock/tuner/model.h"

namespace penstock::tuner {

struct CacheLegality {
  bool is_legal = false;
  std::string why;  // one sentence, of a cache that is not legal
  // Not legal only since nobody says that the node's own Python is pure.
  bool is_legal_if_pure = false;
};

// May a cache stand after each node of the model? By place.
std::vector<CacheLegality> FindCacheLegality(const Model& model);

// Whether the same rows come in every pass where the cache is left out.
bool MayBeLeftOut(const Model& model, int cache);

// What is wrong with the caches that the plan has: one that keeps what was
// drawn, or is never filled to its end.
std::vector<std::string> FindCacheFaults(const Model& model);

}  // namespace penstock::tuner
