// Expansion of file patterns; see FileSystem::Glob for their meaning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::io {

// The paths of this machine that match `pattern`, sorted by their bytes.
absl::StatusOr<std::vector<std::string>> LocalGlob(std::string_view pattern);

}  // namespace penstock::io
