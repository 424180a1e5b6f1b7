// What the operating system refused, as a Status.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace penstock::io {

// `number` is an errno, `what` says what could not be done ("cannot open the
// file"), `path` names the file.
absl::Status SystemError(int number, std::string_view what,
                         std::string_view path);

}  // namespace penstock::io
