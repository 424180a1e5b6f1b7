// `penstock dispatcher`: runs one until it is told to end.
#pragma once

#include <string>
#include <vector>

#include "penstock/main/settings.h"

namespace penstock {

// What it can be told.
const Schema& DispatcherSchema();

// Runs the command with what follows its name. Returns the exit code: 0 after
// SIGTERM or SIGINT, 1 failed, 2 wrong usage.
int RunDispatcher(const std::vector<std::string>& args);

// What is unsafe or slow about settings of its schema, and what to do.
std::vector<std::string> DispatcherFaults(const Settings& settings);

}  // namespace penstock
