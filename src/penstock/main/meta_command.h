// `penstock meta`: looks at the store of a dispatcher, and saves what is whole
// of a damaged one.
#pragma once

#include <string>
#include <vector>

namespace penstock {

// Runs the command with what follows its name. Returns the exit code: 0 if all
// is well, 1 if something is damaged or fails, 2 for wrong usage.
int RunMeta(const std::vector<std::string>& args);

}  // namespace penstock
