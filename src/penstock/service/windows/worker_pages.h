// What a worker shows of itself.
#pragma once

#include <string>

#include "penstock/worker.pb.h"

namespace penstock::windows {

// As Prometheus reads it.
std::string MetricsOf(const service::WorkerReport& report);
// The proto as JSON.
std::string JsonOf(const service::WorkerReport& report);

}  // namespace penstock::windows
