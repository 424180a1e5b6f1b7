// shuffle_before_decode: a shuffle of large rows that a map has made of small
// ones holds the small ones instead.
//
// A shuffle's order depends on its key and on how many rows came, not on their
// values, and a map makes one row of one, so the order is the same; an error
// made before the shuffle or after it stays with its element. Maps are native
// and draw nothing. That rows are smaller must follow from specs, or have been
// measured.
#pragma once

#include "penstock/plan/rewrite/pass.h"

namespace penstock::plan {

bool ShuffleBeforeDecode(Draft& draft, int id, PassContext& context);

}  // namespace penstock::plan
