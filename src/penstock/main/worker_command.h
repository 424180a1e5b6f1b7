// `penstock worker`: computes bundles for a dispatcher until it is told to go.
#pragma once

#include <string>
#include <vector>

namespace penstock {

// Runs the command with what follows its name. SIGTERM or SIGINT: it drains and
// returns within half a minute; a second one ends the process at once. Returns
// the exit code: 0 if it was told to go, 1 if it cannot work, 2 for wrong
// usage.
int RunWorker(const std::vector<std::string>& args);

}  // namespace penstock
