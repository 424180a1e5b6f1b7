// `penstock dispatcher`: runs one until it is told to end; and `penstock
// doctor`, which says what of its settings is unsafe.
#pragma once

#include <string>
#include <vector>

namespace penstock {

// Runs the command with what follows its name. Returns the exit code: 0 after
// SIGTERM or SIGINT, 1 failed, 2 wrong usage.
int RunDispatcher(const std::vector<std::string>& args);

// The same settings, looked at and not run with. 0: nothing is unsafe, 1:
// something is, 2: wrong usage.
int RunDoctor(const std::vector<std::string>& args);

}  // namespace penstock
