// What people ask of a dispatcher that runs: `penstock state`, `jobs`,
// `workers`, `registered`, `unregister`, `top`, `drain` and `cancel`.
#pragma once

#include <string>
#include <vector>

#include "penstock/dispatcher.pb.h"

namespace penstock {

bool IsAdminCommand(const std::string& name);

// Runs the command `name` with what follows it. Returns the exit code: 0 done,
// 1 failed, 2 wrong usage.
int RunAdmin(const std::string& name, const std::vector<std::string>& args);

// As tables for people.
std::string JobsTable(const service::State& state);
std::string WorkersTable(const service::State& state);
std::string RegisteredTable(const service::State& state);
// Of one look to the next: bundles that were done per second.
std::string TopScreen(const service::State& before, const service::State& now,
                      double seconds);

}  // namespace penstock
