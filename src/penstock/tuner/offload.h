// A part of the pipeline done by a service's workers, as if `distribute` stood
// after a node: what they and the network between allow, and what is left here.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "penstock/tuner/model.h"

namespace penstock::tuner {

// Has the node, and what runs for it alone, done by workers with so many cores
// in all, over a network of so many bytes a second, or one without limit. Their
// disks are taken to be as fast as they need. InvalidArgument where others read
// what would be gone, or rows come from a service already.
absl::Status Offload(Model& model, uint32_t after, double cores,
                     std::optional<double> network_bytes_per_second);

}  // namespace penstock::tuner
