#include "penstock/data/copy_past_caches.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

// Sizes on both sides of where stores pass the caches, at all sorts of places;
// nothing beside them is touched.
TEST(CopyPastCachesTest, CopiesWhatItIsGiven) {
  constexpr size_t kLarge = size_t{4} << 20;
  constexpr size_t kMargin = 128;
  std::vector<std::byte> from(kLarge + 2 * kMargin);
  for (size_t i = 0; i < from.size(); ++i) {
    from[i] = static_cast<std::byte>(i * 31 + (i >> 8));
  }
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{100}, kLarge - 1, kLarge, kLarge + 65}) {
    for (const size_t to_at : {0, 1, 63, 64}) {
      for (const size_t from_at : {0, 7, 32}) {
        SCOPED_TRACE(testing::Message()
                     << size << " to " << to_at << " from " << from_at);
        std::vector<std::byte> to(kLarge + 4 * kMargin, std::byte{0xa5});
        CopyPastCaches(to.data() + to_at, from.data() + from_at, size);
        std::vector<std::byte> want(to.size(), std::byte{0xa5});
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(from_at), size,
                    want.begin() + static_cast<std::ptrdiff_t>(to_at));
        ASSERT_TRUE(to == want);
      }
    }
  }
}

}  // namespace
}  // namespace penstock
