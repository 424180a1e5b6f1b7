// Whether the directory that a plan is run from matters to it.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/data/buffer.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// Gives the array of a capture's id: an encoded chunk (data/encode.h).
using FindCapture =
    std::function<absl::StatusOr<Buffer>(const std::string& id)>;

// Whether the plan may open a file whose name does not begin with '/', plans
// that it distributes included. True where names cannot be followed to where
// they come from: constants, arrays, and the directories that are listed.
bool MayOpenRelative(const Plan& plan, const FindCapture& find);

}  // namespace penstock::plan
