// Where a worker may write the snapshots of trainers' plans.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace penstock::service {

// Whether the user of this process has made the snapshot `filename`
// (Cache.filename): snapshot() leaves a file FILENAME.shares there. So nobody
// has the worker write where its user keeps other things. PermissionDenied.
absl::Status CheckKeptFolder(const std::string& filename);

}  // namespace penstock::service
