// Whether an interpreter is fit to run functions of users.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace penstock::pool {

// Starts it once, and waits for it, half a minute at most. FailedPrecondition
// says what was expected of it: Python, numpy and this package, which must be
// of `version`.
absl::Status CheckPython(const std::string& interpreter,
                         const std::string& version);

}  // namespace penstock::pool
