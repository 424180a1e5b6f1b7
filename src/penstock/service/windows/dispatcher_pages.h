// What a dispatcher shows of itself.
#pragma once

#include <string>

#include "penstock/dispatcher.pb.h"

namespace penstock::windows {

// As Prometheus reads it.
std::string MetricsOf(const service::State& state);
// The proto as JSON.
std::string JsonOf(const service::State& state);

}  // namespace penstock::windows
