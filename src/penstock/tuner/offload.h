// A part of the pipeline done by a service's workers, as if `distribute` stood
// after a node: what they and the network between allow, and what is left here.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "penstock/tuner/model.h"

namespace penstock::tuner {

// Has the node at this place, and what is below it, done by workers with so
// many cores in all, over a network of so many bytes a second, or one without
// limit. Their disks are taken to be as fast as they need. InvalidArgument
// where others read what would be gone, or rows come from a service already.
absl::Status Offload(Model& model, int after, double cores,
                     std::optional<double> network_bytes_per_second);

}  // namespace penstock::tuner
