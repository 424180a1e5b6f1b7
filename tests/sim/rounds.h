// What members that read in rounds should have, row by row, as design note 0027
// says it: a model that knows nothing of workers, frames and journals.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/row_feed.h"

namespace penstock::sim {

// So many members from a row on, until the next.
struct Size {
  uint64_t row = 0;
  uint64_t lanes = 0;
};

// Of `bundles` bundles, with as many items as `items_of` says: the items of
// each row, by member. `sizes`: by row, the first from row 0 on.
std::vector<Row> RoundsOf(
    uint64_t bundles, const std::function<uint64_t(uint64_t bundle)>& items_of,
    const std::vector<Size>& sizes);

}  // namespace penstock::sim
