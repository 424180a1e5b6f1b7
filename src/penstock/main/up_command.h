// `penstock up`: a dispatcher and some workers on this machine.
#pragma once

#include <string>
#include <vector>

namespace penstock {

// Starts them as processes of their own, starts those again that die, and ends
// all of them when it is told to end. Gives the exit code.
int RunUp(const std::vector<std::string>& args);

}  // namespace penstock
