// What all servers can be told alike: whom they let in, and what they show.
#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/base/event_log.h"
#include "penstock/main/settings.h"
#include "penstock/service/rpc/server.h"
#include "penstock/service/windows/http_server.h"

namespace penstock {

// `own`, and after them --tls-ca, --tls-cert, --tls-key, --token-file,
// --insecure-i-know, --http, --log-json and --no-log.
std::vector<Setting> WithServerSettings(std::vector<Setting> own);

rpc::ServerSecurity SecurityOf(const Settings& settings);
// What of these, and of --listen, is unsafe, or keeps it from starting.
std::vector<std::string> ServerFaults(const Settings& settings);
std::string WouldNotStart(const absl::Status& why);
// Lines on standard error, those of gRPC included (such as of callers whose
// certificates are refused). Lives for ever. To be called once.
EventLog& StartLog(const Settings& settings, const std::string& part);

// Shows `pages` where --http says; null if it says nothing. InvalidArgument if
// others could see them and nobody has said that they may.
absl::StatusOr<std::unique_ptr<windows::HttpServer>> ShowPages(
    const Settings& settings, windows::HttpServer::Pages pages);

// InvalidArgument if there are words besides flags.
absl::Status ExpectFlagsAlone(const Settings& settings);

// SIGTERM and SIGINT, which all threads that follow leave to this one.
sigset_t HoldEndingSignals();

}  // namespace penstock
