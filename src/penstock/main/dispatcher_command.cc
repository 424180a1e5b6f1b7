#include "penstock/main/dispatcher_command.h"

#include <sys/stat.h>

#include <iostream>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "penstock/base/status.h"
#include "penstock/main/server_settings.h"
#include "penstock/main/settings.h"
#include "penstock/service/dispatcher/dispatcher_grpc.h"
#include "penstock/service/dispatcher/worker_places.h"
#include "penstock/service/rpc/gate.h"
#include "penstock/service/windows/dispatcher_pages.h"
#include "penstock/service/windows/http_server.h"
#include "penstock/session/version.h"

namespace penstock {
namespace {

using service::DispatcherServer;
using service::State;

const std::vector<Setting>& DispatcherSettings() {
  static const auto* const settings = new std::vector<
      Setting>(WithServerSettings({
      {"listen", SettingKind::kText, "HOST:PORT", "127.0.0.1:5050",
       "where it is called; port 0: one that is free"},
      {"state-dir", SettingKind::kText, "DIR", "",
       "where it keeps what it must not forget; none: in memory"},
      {"workers", SettingKind::kTexts, "HOST:PORT", "",
       "all that there will be, in order; needed for static shards; may come "
       "again"},
      {"reflection", SettingKind::kSwitch, "", "",
       "shows its calls to tools like grpcurl"},
      {"lease-ms", SettingKind::kNumber, "N", "5000",
       "a worker that is not heard of for so long is lost"},
      {"client-timeout-ms", SettingKind::kNumber, "N", "60000",
       "a consumer that is not heard of for so long has gone"},
      {"run-timeout-ms", SettingKind::kNumber, "N", "300000",
       "a job without consumers for so long is over"},
      {"unused-timeout-ms", SettingKind::kNumber, "N", "3600000",
       "a pipeline that no job uses for so long is deleted"},
  }));
  return *settings;
}

// The flag may come again, and have several each time.
std::vector<std::string> WorkersOf(const Settings& settings) {
  std::vector<std::string> workers;
  for (const std::string& some : settings.texts("workers")) {
    for (const absl::string_view each :
         absl::StrSplit(some, ',', absl::SkipWhitespace())) {
      workers.emplace_back(absl::StripAsciiWhitespace(each));
    }
  }
  return workers;
}

absl::Status CheckWorkers(const Settings& settings) {
  const absl::Status status =
      service::WorkerPlaces::Validate(WorkersOf(settings));
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(settings.source("workers"), ": ", status.message()));
}

DispatcherServer::Options OptionsOf(const Settings& settings) {
  DispatcherServer::Options options;
  options.listen = settings.text("listen");
  options.state_dir = settings.text("state-dir");
  options.security = SecurityOf(settings);
  options.has_reflection = settings.is_on("reflection");
  options.version = session::kVersion;
  options.settings.lease_ms = settings.number("lease-ms");
  options.settings.client_timeout_ms = settings.number("client-timeout-ms");
  options.settings.run_timeout_ms = settings.number("run-timeout-ms");
  options.settings.unused_timeout_ms = settings.number("unused-timeout-ms");
  options.settings.workers = WorkersOf(settings);
  return options;
}

absl::Status CheckTimes(const Settings& settings) {
  constexpr int64_t kLeastLeaseMillis = 300;
  if (settings.number("lease-ms") >= kLeastLeaseMillis) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(settings.source("lease-ms"), ": expected at least ",
                   kLeastLeaseMillis, "; got ", settings.number("lease-ms")));
}

windows::HttpServer::Pages PagesOf(const DispatcherServer& server) {
  const auto* shown = &server;
  return {
      {"/healthz",
       [shown] {
         const bool is_full = shown->Describe().is_disk_full();
         return windows::Page{is_full ? 503 : 200, "text/plain; charset=utf-8",
                              is_full ? "the disk is full\n" : "ok\n"};
       }},
      {"/metrics",
       [shown] {
         return windows::Page{200, "text/plain; version=0.0.4; charset=utf-8",
                              windows::MetricsOf(shown->Describe())};
       }},
      {"/state", [shown] {
         return windows::Page{200, "application/json",
                              windows::JsonOf(shown->Describe())};
       }}};
}

int Failed(const absl::Status& status) {
  std::cerr << "penstock dispatcher: " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

}  // namespace

const Schema& DispatcherSchema() {
  static const Schema* const schema = new Schema{
      "dispatcher",
      "",
      "Runs a dispatcher: it shares out the work of jobs among workers. Says\n"
      "where it listens when it is ready, and ends on SIGTERM.\n",
      "penstock dispatcher --state-dir /var/lib/penstock --http 5051",
      "PENSTOCK_DISPATCHER_",
      "dispatcher",
      DispatcherSettings()};
  return *schema;
}

int RunDispatcher(const std::vector<std::string>& args) {
  const ReadResult read = ReadSettings(DispatcherSchema(), args);
  if (!read.settings) return read.exit_code;
  const Settings& settings = *read.settings;
  for (const absl::Status& status :
       {ExpectFlagsAlone(settings), CheckTimes(settings),
        CheckWorkers(settings)}) {
    if (!status.ok()) return Failed(status);
  }
  const sigset_t signals = HoldEndingSignals();
  DispatcherServer::Options options = OptionsOf(settings);
  EventLog& log = StartLog(settings, "dispatcher");
  options.log = &log;
  const auto server = DispatcherServer::Start(options);
  if (!server.ok()) return Failed(server.status());
  auto pages = ShowPages(settings, PagesOf(**server));
  if (!pages.ok()) return Failed(pages.status());
  for (const std::string& unsafe :
       rpc::UnsafeSettings(options.listen, options.security)) {
    std::cerr << "penstock dispatcher: unsafe: " << unsafe << "\n";
  }
  const State state = (*server)->Describe();
  log.Write("started",
            {{"version", session::kVersion},
             {"address", (*server)->address()},
             {"term", absl::StrCat(state.term())},
             {"jobs", absl::StrCat(state.jobs_size())},
             {"tls", options.security.ca_file.empty() ? "no" : "yes"},
             {"tokens", options.security.token_file.empty() ? "no" : "yes"}});
  std::cout << "penstock dispatcher listens at " << (*server)->address();
  if (*pages != nullptr) {
    std::cout << ", shows itself at http://" << (*pages)->address();
  }
  std::cout << std::endl;
  int received = 0;
  sigwait(&signals, &received);
  log.Write("ending", {{"signal", absl::StrCat(received)}});
  pages->reset();
  (*server)->Stop();
  return 0;
}

std::vector<std::string> DispatcherFaults(const Settings& settings) {
  const DispatcherServer::Options options = OptionsOf(settings);
  std::vector<std::string> faults = ServerFaults(settings);
  for (const absl::Status& status :
       {ExpectFlagsAlone(settings), CheckTimes(settings),
        CheckWorkers(settings),
        rpc::Gate::Make(options.security.token_file).status()}) {
    if (!status.ok()) faults.push_back(WouldNotStart(status));
  }
  if (options.state_dir.empty()) {
    faults.push_back(
        "no --state-dir: jobs do not survive a restart of the dispatcher; "
        "give a folder of its own");
  } else if (struct stat found; stat(options.state_dir.c_str(), &found) == 0 &&
                                (found.st_mode & 022) != 0) {
    faults.push_back(absl::StrFormat(
        "others can write to '%s' (mode %04o): chmod 700 %s", options.state_dir,
        found.st_mode & 07777, options.state_dir));
  }
  return faults;
}

}  // namespace penstock
