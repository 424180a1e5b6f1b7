// Copies that are too large to be found in a cache by whoever reads them.
#pragma once

#include <cstddef>

namespace penstock {

// memcpy. Where there is more than caches hold of a batch, by stores that leave
// them alone: the memory it goes to is not read first, and what is in the
// caches stays there. All of it is written when this returns, for other
// processes too. REQUIRES: the two do not overlap.
void CopyPastCaches(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace penstock
