// Caches in files, as the user asked for them, whose rows come back slowly.
#pragma once

#include "penstock/tuner/bound.h"
#include "penstock/tuner/model.h"

namespace penstock::tuner {

// The cache whose file a limit is about: the limit is of what reads the file
// back, or of a disk of which that takes most. Its place; -1: there is none.
int CacheReadBack(const Model& model, const Limit& limit);

}  // namespace penstock::tuner
