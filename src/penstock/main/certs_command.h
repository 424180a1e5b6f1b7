// `penstock certs`: certificates for development and small clusters.
#pragma once

#include <string>
#include <vector>

namespace penstock {

// Runs the command with what follows its name. Returns the exit code: 0 done,
// 1 failed, 2 wrong usage.
int RunCerts(const std::vector<std::string>& args);

}  // namespace penstock
