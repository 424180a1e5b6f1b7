// `penstock doctor`: what of a server's settings is unsafe or slow, and what to
// do about it.
#pragma once

#include <string>
#include <vector>

namespace penstock {

// With what follows the command's name: `dispatcher` or `worker`, and the flags
// of that. Without such a word the flags are the dispatcher's; without flags, a
// worker is looked at as well if the environment has settings for one. Nothing
// is run. 0: nothing was found, 1: something was, 2: wrong usage.
int RunDoctor(const std::vector<std::string>& args);

}  // namespace penstock
