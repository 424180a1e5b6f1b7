// What parts of different releases tell each other apart by.
#pragma once

#include <cstdint>

namespace penstock::rpc {

// Old and new cannot talk where the first number differs.
inline constexpr uint32_t kMajorVersion = 1;
inline constexpr uint32_t kMinorVersion = 0;

}  // namespace penstock::rpc
