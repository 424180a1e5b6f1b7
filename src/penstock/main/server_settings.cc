#include "penstock/main/server_settings.h"

#include <grpc/support/log.h>
#include <pthread.h>

#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// gRPC calls a function without data.
EventLog* grpc_log = nullptr;

}  // namespace

std::vector<Setting> WithServerSettings(std::vector<Setting> own) {
  const Setting shared[] = {
      {"tls-ca", SettingKind::kText, "FILE", "",
       "whose certificates callers must show"},
      {"tls-cert", SettingKind::kText, "FILE", "", "its own certificate"},
      {"tls-key", SettingKind::kText, "FILE", "", "and the key of that"},
      {"token-file", SettingKind::kText, "FILE", "",
       "words that callers must show; lines role:word, or one word"},
      {"insecure-i-know", SettingKind::kSwitch, "", "",
       "lets everybody in who can reach it"},
      {"http", SettingKind::kText, "[HOST:]PORT", "",
       "shows /healthz, /metrics and /state there"},
      {"log-json", SettingKind::kSwitch, "", "",
       "says what it does in lines of JSON"},
      {"no-log", SettingKind::kSwitch, "", "", "says nothing of what it does"},
  };
  own.insert(own.end(), std::begin(shared), std::end(shared));
  return own;
}

rpc::ServerSecurity SecurityOf(const Settings& settings) {
  rpc::ServerSecurity security;
  security.ca_file = settings.text("tls-ca");
  security.cert_file = settings.text("tls-cert");
  security.key_file = settings.text("tls-key");
  security.token_file = settings.text("token-file");
  security.is_insecure = settings.is_on("insecure-i-know");
  return security;
}

std::vector<std::string> ServerFaults(const Settings& settings) {
  const std::string listen = settings.text("listen");
  const rpc::ServerSecurity security = SecurityOf(settings);
  std::vector<std::string> faults = rpc::UnsafeSettings(listen, security);
  if (const auto credentials = rpc::MakeServerCredentials(listen, security);
      !credentials.ok()) {
    faults.push_back(WouldNotStart(credentials.status()));
  }
  const std::string http = settings.text("http");
  if (!http.empty() && !rpc::IsLoopback(windows::WithHost(http))) {
    faults.push_back(absl::StrCat("names of jobs and workers are shown to ",
                                  "everybody at ", http,
                                  "; give a port alone"));
  }
  return faults;
}

std::string WouldNotStart(const absl::Status& why) {
  return absl::StrCat("it would not start: ", std::string(why.message()));
}

EventLog& StartLog(const Settings& settings, const std::string& part) {
  EventLog::Options options;
  options.part = part;
  options.is_json = settings.is_on("log-json");
  if (settings.is_on("no-log")) options.write = [](const std::string&) {};
  grpc_log = new EventLog(std::move(options));
  gpr_set_log_function([](gpr_log_func_args* said) {
    const std::string_view file(said->file);
    grpc_log->Write(
        "grpc",
        {{"at", absl::StrCat(std::string(file.substr(file.rfind('/') + 1)), ":",
                             said->line)},
         {"text", std::string(absl::StripAsciiWhitespace(said->message))}});
  });
  return *grpc_log;
}

absl::StatusOr<std::unique_ptr<windows::HttpServer>> ShowPages(
    const Settings& settings, windows::HttpServer::Pages pages) {
  if (settings.text("http").empty()) return nullptr;
  const std::string address = windows::WithHost(settings.text("http"));
  if (!rpc::IsLoopback(address) && !settings.is_on("insecure-i-know")) {
    return absl::InvalidArgumentError(absl::StrCat(
        settings.source("http"), ": '", address,
        "' can be reached by other machines, and pages are shown to ",
        "everybody\n  Give a port alone, or --insecure-i-know."));
  }
  return windows::HttpServer::Start(address, std::move(pages));
}

absl::Status ExpectFlagsAlone(const Settings& settings) {
  if (settings.words().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("expected flags; got '", settings.words()[0], "'"));
}

sigset_t HoldEndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

}  // namespace penstock
