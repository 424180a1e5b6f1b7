// The `penstock` command: the only place that wires real clocks, files and
// sockets together.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/debugging/failure_signal_handler.h"
#include "absl/debugging/symbolize.h"
#include "absl/strings/numbers.h"
#include "absl/synchronization/mutex.h"
#include "penstock/main/admin_command.h"
#include "penstock/main/certs_command.h"
#include "penstock/main/dispatcher_command.h"
#include "penstock/main/doctor_command.h"
#include "penstock/main/find_python.h"
#include "penstock/main/freed_memory.h"
#include "penstock/main/functions_python.h"
#include "penstock/main/meta_command.h"
#include "penstock/main/up_command.h"
#include "penstock/main/worker_command.h"
#include "penstock/session/host_limits.h"
#include "penstock/session/serve.h"
#include "penstock/session/version.h"

namespace penstock {
namespace {

constexpr char kHelp[] =
    R"(penstock: input pipelines for machine learning

  penstock run FILE:NAME [--seconds N]   drain a pipeline, show what it did
  penstock explain FILE:NAME | TRACE     what limits a pipeline, and what to do
  penstock tune FILE:NAME [--write F]    the best settings, measured
  penstock up [--workers N]              a service on this machine
  penstock dispatcher [--state-dir DIR]  shares out work among workers
  penstock worker --dispatcher ADDRESS   computes what a dispatcher shares out
  penstock state|jobs|workers ADDRESS    what a dispatcher knows
  penstock registered ADDRESS            pipelines that stay with it
  penstock unregister ADDRESS ID         one of them may go
  penstock top ADDRESS                   jobs and workers, once a second
  penstock drain ADDRESS WORKER          a worker gives its work to others
  penstock cancel ADDRESS JOB            a job is over, whoever reads it
  penstock code zip NAME -o FILE.zip     modules, as workers get them
  penstock code hash FILE.zip            what to accept them by
  penstock certs DIR [--host NAME]       certificates for development
  penstock doctor [dispatcher|worker]    unsafe or slow settings, and the fix
  penstock meta check DIR                is a dispatcher's store whole?
  penstock meta salvage DIR NEW          a new store of what is whole
  penstock functions --python            the native functions, as Python
  penstock --version
  penstock --help

Example:
  penstock run pipeline.py:ds --seconds 10
  penstock explain pipeline.py:ds

Exit codes: 0 done, 1 failed, 2 wrong usage.
`penstock engine` is started by the Python package, not by hand.
)";

int Usage(const std::string& problem) {
  std::cerr << "penstock: " << problem << "\nTry `penstock --help`.\n";
  return 2;
}

// The trainer decides when the engine ends: Ctrl-C and SIGTERM to the group
// are for it, so that it can still save its state.
void LeaveSignalsToTheTrainer() {
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
}

// Where memory runs out, the engine should go before the trainer does: it can
// be started again.
void OfferItselfToTheOomKiller() {
  std::ofstream("/proc/self/oom_score_adj") << 500;
}

int RunEngine(const std::vector<std::string>& args) {
  int control = -1;
  int service = -1;
  for (size_t i = 0; i + 1 < args.size(); i += 2) {
    int fd;
    if (!absl::SimpleAtoi(args[i + 1], &fd) || fd < 0) {
      return Usage("expected a descriptor after " + args[i]);
    }
    if (args[i] == "--control-fd") control = fd;
    if (args[i] == "--service-fd") service = fd;
  }
  if (control < 0 || service < 0) {
    return Usage("engine needs --control-fd and --service-fd");
  }
  LeaveSignalsToTheTrainer();
  OfferItselfToTheOomKiller();
  KeepFreedMemory(session::FindHostLimits().memory_bytes);
  const absl::Status status =
      session::Serve(Descriptor(control), Descriptor(service));
  if (status.ok()) return 0;
  std::cerr << "penstock engine: " << status.message() << "\n";
  return 1;
}

// Pipelines are Python.
int RunPython(const std::string& module, const std::vector<std::string>& args) {
  const std::string interpreter = FindPython();
  std::vector<std::string> words = {interpreter, "-m", "penstock." + module};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::cerr << "penstock: cannot start " << interpreter << ": "
            << std::strerror(errno) << "\n";
  return 1;
}

int Main(int argc, char** argv) {
  absl::InitializeSymbolizer(argv[0]);
  absl::InstallFailureSignalHandler({});
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.empty() || args[0] == "--help" || args[0] == "help") {
    std::cout << kHelp;
    return 0;
  }
  const std::vector<std::string> rest(args.begin() + 1, args.end());
  if (args[0] == "--version") {
    std::cout << "penstock " << session::kVersion << "\n";
    return 0;
  }
  if (args[0] == "engine") return RunEngine(rest);
  if (args[0] == "run" || args[0] == "explain" || args[0] == "tune" ||
      args[0] == "code") {
    return RunPython(args[0], rest);
  }
  if (args[0] == "up") return RunUp(rest);
  if (args[0] == "meta") return RunMeta(rest);
  if (args[0] == "dispatcher") return RunDispatcher(rest);
  if (args[0] == "worker") return RunWorker(rest);
  if (args[0] == "doctor") return RunDoctor(rest);
  if (args[0] == "certs") return RunCerts(rest);
  if (IsAdminCommand(args[0])) return RunAdmin(args[0], rest);
  if (args[0] == "functions") {
    if (rest.empty() || rest[0] != "--python" || rest.size() > 2) {
      return Usage("expected `penstock functions --python [image|...]`");
    }
    std::cout << FunctionsAsPython(rest.size() > 1 ? rest[1] : "");
    return 0;
  }
  return Usage(
      "expected run, explain, tune, up, dispatcher, worker, state, jobs, "
      "workers, registered, unregister, top, "
      "drain, cancel, code, certs, doctor, meta, functions, --version or "
      "--help; "
      "got " +
      args[0]);
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  // Abseil may come built with its checks, as Debian's does: then each lock of
  // gRPC looks for cycles among all locks.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return penstock::Main(argc, argv);
}
