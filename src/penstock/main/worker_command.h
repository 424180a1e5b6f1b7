// `penstock worker`: computes bundles for a dispatcher until it is told to go.
#pragma once

#include <string>
#include <vector>

#include "penstock/main/settings.h"

namespace penstock {

// What it can be told.
const Schema& WorkerSchema();

// Runs the command with what follows its name. SIGTERM or SIGINT: it drains and
// returns within half a minute; a second one ends the process at once. Returns
// the exit code: 0 if it was told to go, 1 if it cannot work, 2 for wrong
// usage.
int RunWorker(const std::vector<std::string>& args);

// What is unsafe or slow about settings of its schema, and what to do.
std::vector<std::string> WorkerFaults(const Settings& settings);

}  // namespace penstock
