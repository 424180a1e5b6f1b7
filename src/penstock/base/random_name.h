// Names that nobody guesses.
#pragma once

#include <cstddef>
#include <string>

namespace penstock {

// Two hexadecimal digits for each of as many bytes of the system's randomness.
std::string RandomName(size_t bytes);

}  // namespace penstock
