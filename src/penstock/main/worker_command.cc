#include "penstock/main/worker_command.h"

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "penstock/base/status.h"
#include "penstock/io/allowed_files.h"
#include "penstock/main/find_python.h"
#include "penstock/main/freed_memory.h"
#include "penstock/main/server_settings.h"
#include "penstock/main/settings.h"
#include "penstock/pool/confinement.h"
#include "penstock/service/client/pass.h"
#include "penstock/service/rpc/channel.h"
#include "penstock/service/rpc/gate.h"
#include "penstock/service/windows/worker_pages.h"
#include "penstock/service/worker/worker_server.h"
#include "penstock/session/host_limits.h"
#include "penstock/session/version.h"

namespace penstock {
namespace {

using service::WorkerServer;

// Under the 30 s that most give a process to end.
constexpr absl::Duration kDrainTime = absl::Seconds(28);
constexpr absl::Duration kLook = absl::Milliseconds(200);
// To services whose jobs it has read.
constexpr absl::Duration kGoodbyes = absl::Seconds(1);

int Failed(const absl::Status& status) {
  std::cerr << "penstock worker: " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

bool IsEverywhere(const std::string& address) {
  return absl::StartsWith(address, "0.0.0.0:") ||
         absl::StartsWith(address, "[::]:") || absl::StartsWith(address, ":");
}

// What must be so before anything is opened.
absl::Status Check(const Settings& settings) {
  PENSTOCK_RETURN_IF_ERROR(ExpectFlagsAlone(settings));
  if (settings.text("dispatcher").empty()) {
    return absl::InvalidArgumentError("expected --dispatcher HOST:PORT");
  }
  if (settings.number("frame-port") > 65'535) {
    return absl::InvalidArgumentError(
        absl::StrCat("--frame-port must be at most 65535; got ",
                     settings.number("frame-port")));
  }
  const std::string dispatcher = rpc::AddressOf(settings.text("dispatcher"));
  if (absl::StrContains(dispatcher, "://")) {
    return absl::InvalidArgumentError(
        absl::StrCat(settings.source("dispatcher"), ": expected HOST:PORT, or ",
                     "penstock://HOST:PORT; got '", dispatcher, "'"));
  }
  const std::string listen = settings.text("listen");
  if (IsEverywhere(listen) && settings.text("advertise").empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", listen, "' is no address that trainers could call: expected ",
        "--advertise HOST, as they know this machine"));
  }
  if (rpc::IsLoopback(listen) && settings.text("advertise").empty() &&
      !rpc::IsLoopback(dispatcher)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the dispatcher is at '", dispatcher,
        "', and trainers elsewhere cannot reach '", listen,
        "': expected --listen HOST:PORT, an address of this machine that they ",
        "can\n  For trainers on this machine alone: --advertise 127.0.0.1."));
  }
  if (!rpc::IsLoopback(listen) && settings.texts("allow").empty() &&
      !settings.is_on("insecure-i-know")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", listen, "' can be reached by other machines, so it must be said ",
        "which files they may have read: expected --allow DIR\n",
        "  --allow / allows all that this user may read."));
  }
  return absl::OkStatus();
}

// Null: all that this user may read.
absl::StatusOr<std::unique_ptr<io::FileSystem>> AllowedFiles(
    const Settings& settings) {
  const std::vector<std::string> snapshots = settings.texts("snapshots");
  std::vector<std::string> folders = settings.texts("allow");
  if (folders.empty() && snapshots.empty()) return nullptr;
  PENSTOCK_RETURN_IF_ERROR(
      io::MakeAllowedFileSystem(snapshots, "--snapshots", snapshots).status());
  if (folders.empty()) folders.emplace_back("/");
  folders.insert(folders.end(), snapshots.begin(), snapshots.end());
  return io::MakeAllowedFileSystem(folders, "--allow", snapshots);
}

// Lets in whom the gate admits, and says whom it does not.
auto CallerCheck(rpc::Gate& gate, EventLog& log) {
  return [&gate, &log](const grpc::CallbackServerContext& call,
                       std::string_view method) {
    const absl::Status status = gate.Admit(call, method);
    if (!status.ok()) {
      log.Write("call_refused",
                {{"peer", call.peer()},
                 {"method", std::string(method)},
                 {"code", absl::StatusCodeToString(status.code())}});
    }
    return status;
  };
}

absl::StatusOr<std::unique_ptr<rpc::Gate>> MakeGate(
    const rpc::ServerSecurity& security) {
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<rpc::Gate> gate,
                            rpc::Gate::Make(security.token_file));
  constexpr rpc::Roles kNeeded = rpc::kConsumer | rpc::kWorker;
  if ((gate->roles() & kNeeded) != kNeeded) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the token file '", security.token_file,
        "' must have a word for worker, which this one shows to the ",
        "dispatcher, and one for consumer, which its readers show"));
  }
  return gate;
}

WorkerServer::Options OptionsOf(const Settings& settings) {
  WorkerServer::Options options;
  options.dispatcher = rpc::AddressOf(settings.text("dispatcher"));
  options.listen = settings.text("listen");
  options.advertise = settings.text("advertise");
  options.tags = settings.texts("tags");
  options.services = settings.texts("allow-services");
  options.version = session::kVersion;
  const session::HostLimits limits = session::FindHostLimits();
  options.cpus = static_cast<int>(settings.number("cpu"));
  if (options.cpus == 0) options.cpus = static_cast<int>(limits.cpus);
  options.memory_bytes = settings.number("memory");
  if (options.memory_bytes == 0) options.memory_bytes = limits.memory_bytes / 2;
  options.spill_bytes = settings.number("spill");
  options.python = settings.text("python").empty()
                       ? FindPython()
                       : FindProgram(settings.text("python"));
  options.python_bytes = settings.number("python-memory");
  const rpc::ServerSecurity security = SecurityOf(settings);
  options.has_frame_socket = security.ca_file.empty();
  options.frame_port = static_cast<uint16_t>(settings.number("frame-port"));
  options.credentials = {security.ca_file, security.cert_file,
                         security.key_file, security.token_file, "worker"};
  return options;
}

std::vector<std::string> UnsafeCode(const service::CodeRules& rules) {
  std::vector<std::string> unsafe;
  const char* const who =
      ": whoever may open jobs runs programs as this user; accept code by its "
      "hash (`penstock code hash`)";
  if (rules.accepts_any()) {
    unsafe.push_back(absl::StrCat("--code-allow any", who));
  }
  if (rules.accepts_pickles()) {
    unsafe.push_back(absl::StrCat("--allow-pickle", who));
  }
  return unsafe;
}

windows::HttpServer::Pages PagesOf(const WorkerServer& worker) {
  const auto* shown = &worker;
  return {
      {"/healthz",
       [shown] {
         const absl::Status refusal = shown->refusal();
         const bool is_heard = shown->Report().has_heard_ms_ago();
         return windows::Page{
             is_heard && refusal.ok() ? 200 : 503, "text/plain; charset=utf-8",
             is_heard && refusal.ok() ? "ok\n"
                                      : "no dispatcher has answered\n"};
       }},
      {"/metrics",
       [shown] {
         return windows::Page{200, "text/plain; version=0.0.4; charset=utf-8",
                              windows::MetricsOf(shown->Report())};
       }},
      {"/state", [shown] {
         return windows::Page{200, "application/json",
                              windows::JsonOf(shown->Report())};
       }}};
}

// Waits until it is told to end, by a signal or by the dispatcher, as long as
// that may yet talk to it.
absl::Status AwaitEnd(const WorkerServer& worker, const sigset_t& signals) {
  while (true) {
    const timespec look = absl::ToTimespec(kLook);
    if (sigtimedwait(&signals, nullptr, &look) > 0) return absl::OkStatus();
    if (worker.is_draining()) return absl::OkStatus();
    PENSTOCK_RETURN_IF_ERROR(worker.refusal());
  }
}

}  // namespace

const Schema& WorkerSchema() {
  static const Schema* const schema = new Schema{
      "worker",
      "",
      "Runs a worker: it computes input data for trainers elsewhere. Prints "
      "one\n"
      "line with its address when it can be read from. SIGTERM: it gives its\n"
      "work to others and ends within 30 s; a second signal ends it at once.\n",
      "penstock worker --dispatcher head:5050 --listen 0.0.0.0:5051 "
      "--advertise worker7\n    --allow /data --tls-ca ca.pem --tls-cert "
      "server.pem --tls-key server.key",
      "PENSTOCK_WORKER_",
      "worker",
      WithServerSettings({
          {"dispatcher", SettingKind::kText, "HOST:PORT", "",
           "whose work it does; needed"},
          {"listen", SettingKind::kText, "HOST:PORT", "127.0.0.1:0",
           "where it is read from; port 0: one that is free"},
          {"frame-port", SettingKind::kNumber, "PORT", "0",
           "where frames are read beside --listen, without TLS; 0: one that "
           "is free"},
          {"advertise", SettingKind::kText, "HOST[:PORT]", "",
           "what trainers reach it by; none: as in --listen"},
          {"allow", SettingKind::kTexts, "DIR", "",
           "a folder whose files it may read; may come again"},
          {"snapshots", SettingKind::kTexts, "DIR", "",
           "a folder where it may write snapshots; may come again"},
          {"allow-services", SettingKind::kTexts, "HOST:PORT", "",
           "a service that pipelines may read, besides its own; may come "
           "again"},
          {"cpu", SettingKind::kNumber, "N", "0",
           "threads that compute; 0: all that it may use"},
          {"memory", SettingKind::kNumber, "BYTES", "0",
           "for rows and frames; 0: half of what it may use"},
          {"spill", SettingKind::kNumber, "BYTES", "0",
           "on disk, for readers far behind others who share; 0: none"},
          {"code-allow", SettingKind::kTexts, "CODE", "",
           "Python that it runs: any, sha256:HASH, or a folder of zips; may "
           "come "
           "again"},
          {"allow-pickle", SettingKind::kSwitch, "", "",
           "runs Python functions of trainers that come as pickles"},
          {"python", SettingKind::kText, "PATH", "",
           "the interpreter for these; none: beside the binary, or python3"},
          {"python-memory", SettingKind::kNumber, "BYTES", "0",
           "of each of its processes; 0: a core's share of --memory"},
          {"tags", SettingKind::kTexts, "WORD", "",
           "shown with it to people; may come again"},
      })};
  return *schema;
}

std::vector<std::string> WorkerFaults(const Settings& settings) {
  std::vector<std::string> faults = ServerFaults(settings);
  const auto rules = service::CodeRules::Make(settings.texts("code-allow"),
                                              settings.is_on("allow-pickle"));
  for (const absl::Status& status :
       {Check(settings), MakeGate(SecurityOf(settings)).status(),
        AllowedFiles(settings).status(), rules.status()}) {
    if (!status.ok()) faults.push_back(WouldNotStart(status));
  }
  if (settings.texts("allow").empty()) {
    faults.push_back(
        "no --allow: whoever may open jobs has it read every file that this "
        "user may read; give the folders of the data");
  }
  if (rules.ok()) {
    for (const std::string& each : UnsafeCode(*rules)) faults.push_back(each);
    if (!rules->accepts_none() && geteuid() == 0) {
      faults.push_back(
          "it runs Python of trainers as root; start it as a user of its own");
    }
  }
  const session::HostLimits limits = session::FindHostLimits();
  if (const int64_t cpu = settings.number("cpu"); cpu > limits.cpus) {
    faults.push_back(absl::StrCat("slow: --cpu ", cpu, ", but it may use ",
                                  limits.cpus, " cores; leave it out"));
  }
  const int64_t memory = settings.number("memory");
  if (memory > limits.memory_bytes) {
    faults.push_back(absl::StrCat(
        "--memory ", memory, ", but it may use ", limits.memory_bytes,
        " bytes, and is killed beyond that; leave it out"));
  }
  constexpr int64_t kLittleMemory = int64_t{64} << 20;
  if (memory > 0 && memory < kLittleMemory) {
    faults.push_back(absl::StrCat("slow: --memory ", memory,
                                  " holds few batches; give at least ",
                                  kLittleMemory, ", or leave it out"));
  }
  return faults;
}

int RunWorker(const std::vector<std::string>& args) {
  const ReadResult read = ReadSettings(WorkerSchema(), args);
  if (!read.settings) return read.exit_code;
  const Settings& settings = *read.settings;
  if (const absl::Status status = Check(settings); !status.ok()) {
    return Failed(status);
  }
  const rpc::ServerSecurity security = SecurityOf(settings);
  WorkerServer::Options options = OptionsOf(settings);
  KeepFreedMemory(options.memory_bytes);
  // Before there are other threads, so that none of them takes the signals.
  const sigset_t signals = HoldEndingSignals();
  EventLog& log = StartLog(settings, "worker");
  options.log = &log;
  auto credentials = rpc::MakeServerCredentials(options.listen, security);
  if (!credentials.ok()) return Failed(credentials.status());
  options.server_credentials = *std::move(credentials);
  const auto gate = MakeGate(security);
  if (!gate.ok()) return Failed(gate.status());
  options.check_caller = CallerCheck(**gate, log);
  options.allowed = settings.texts("allow");
  const auto allowed = AllowedFiles(settings);
  if (!allowed.ok()) return Failed(allowed.status());
  if (*allowed != nullptr) {
    options.files = allowed->get();
    options.has_written_folders = true;
  }
  auto rules = service::CodeRules::Make(settings.texts("code-allow"),
                                        settings.is_on("allow-pickle"));
  if (!rules.ok()) return Failed(rules.status());
  options.code = *std::move(rules);
  // Code of others could read this process's words and keys.
  if (!options.code.accepts_none()) pool::HideThisProcess();
  const auto worker = WorkerServer::Start(options);
  if (!worker.ok()) return Failed(worker.status());
  auto pages = ShowPages(settings, PagesOf(**worker));
  if (!pages.ok()) return Failed(pages.status());
  for (const std::string& unsafe :
       rpc::UnsafeSettings(options.listen, security)) {
    std::cerr << "penstock worker: unsafe: " << unsafe << "\n";
  }
  for (const std::string& unsafe : UnsafeCode(options.code)) {
    std::cerr << "penstock worker: unsafe: " << unsafe << "\n";
  }
  log.Write("started",
            {{"version", session::kVersion},
             {"address", (*worker)->address()},
             {"dispatcher", options.dispatcher},
             {"tls", security.ca_file.empty() ? "no" : "yes"},
             {"tokens", security.token_file.empty() ? "no" : "yes"},
             {"allow", absl::StrJoin(options.allowed, ",")},
             {"code", absl::StrJoin(options.code.accepted(), ",")},
             {"pickles", options.code.accepts_pickles() ? "yes" : "no"}});
  // The address is the last word, for programs.
  std::cout << "worker";
  if (*pages != nullptr) {
    std::cout << " with pages at http://" << (*pages)->address();
  }
  std::cout << " ready at " << (*worker)->address() << std::endl;
  const absl::Status end = AwaitEnd(**worker, signals);
  if (!end.ok()) {
    Failed(end);
    return 1;
  }
  std::thread([signals] {
    int signal = 0;
    if (sigwait(&signals, &signal) == 0) _exit(128 + signal);
  }).detach();
  (*worker)->Drain();
  const bool is_drained = (*worker)->WaitUntilDrained(kDrainTime);
  log.Write("ending", {{"drained", is_drained ? "yes" : "no"}});
  if (!is_drained) {
    std::cerr << "penstock worker: the dispatcher did not take its work back; "
                 "it will notice\n";
  }
  std::cout.flush();
  service::WaitForGoodbyes(kGoodbyes);
  (*worker)->LeaveNothing();
  // What is open ends with the process.
  _exit(0);
}

}  // namespace penstock
