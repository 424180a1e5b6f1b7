#include "sim/rounds.h"

#include <limits>

namespace penstock::sim {

std::vector<Row> RoundsOf(
    uint64_t bundles, const std::function<uint64_t(uint64_t bundle)>& items_of,
    const std::vector<Size>& sizes) {
  std::vector<Row> rows;
  std::vector<uint64_t> had(bundles, 0);  // the first items of each
  for (size_t i = 0; i < sizes.size(); ++i) {
    const uint64_t lanes = sizes[i].lanes;
    const uint64_t end = i + 1 < sizes.size()
                             ? sizes[i + 1].row
                             : std::numeric_limits<uint64_t>::max();
    const std::vector<uint64_t> begun = had;
    Row spares;
    const auto give = [&](const Row& row) {
      for (const Item& item : row) had[item.first] = item.second + 1;
      rows.push_back(row);
    };
    for (uint64_t bundle = 0; bundle < bundles && rows.size() < end; ++bundle) {
      const uint64_t items = items_of(bundle);
      uint64_t next = begun[bundle];
      // What was begun in other rounds goes to all, item by item.
      while (begun[bundle] == 0 && next + lanes <= items && rows.size() < end) {
        Row row;
        while (row.size() < lanes) row.emplace_back(bundle, next++);
        give(row);
      }
      while (next < items && rows.size() < end) {
        spares.emplace_back(bundle, next++);
        if (spares.size() < lanes) continue;
        give(spares);
        spares.clear();
      }
    }
  }
  return rows;
}

}  // namespace penstock::sim
