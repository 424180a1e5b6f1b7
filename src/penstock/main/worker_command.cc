#include "penstock/main/worker_command.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "penstock/service/worker/worker_server.h"
#include "penstock/session/host_limits.h"
#include "penstock/session/version.h"

namespace penstock {
namespace {

constexpr char kHelp[] =
    R"(penstock worker: computes input data for trainers elsewhere

  penstock worker --dispatcher HOST:PORT
    [--listen ADDR]      where it is read from; 127.0.0.1:0 unless given
    [--advertise ADDR]   what trainers reach it by; that of --listen
    [--cpu N]            threads that compute; all that it may use
    [--memory BYTES]     for rows and frames; half of what it may use

Prints one line with its address when it can be read from. SIGTERM: it gives its
work to others and ends within 30 s; a second signal ends it at once.

Example:
  penstock worker --dispatcher head:5050 --listen 0.0.0.0:5051 \
    --advertise worker7:5051

Exit codes: 0 told to go, 1 failed, 2 wrong usage.
)";

// Under the 30 s that most give a process to end.
constexpr absl::Duration kDrainTime = absl::Seconds(28);
constexpr absl::Duration kLook = absl::Milliseconds(200);

int Usage(const std::string& problem) {
  std::cerr << "penstock worker: " << problem
            << "\nTry `penstock worker --help`.\n";
  return 2;
}

// What is wrong with the words, or nothing.
std::optional<std::string> Parse(const std::vector<std::string>& args,
                                 service::WorkerServer::Options& options) {
  for (size_t i = 0; i < args.size(); i += 2) {
    const std::string& name = args[i];
    if (i + 1 == args.size()) {
      return absl::StrCat("expected a value after ", name);
    }
    const std::string& value = args[i + 1];
    if (name == "--dispatcher") {
      options.dispatcher = value;
    } else if (name == "--listen") {
      options.listen = value;
    } else if (name == "--advertise") {
      options.advertise = value;
    } else if (name == "--cpu") {
      if (!absl::SimpleAtoi(value, &options.cpus) || options.cpus < 1) {
        return absl::StrCat("--cpu must be at least 1; got ", value);
      }
    } else if (name == "--memory") {
      if (!absl::SimpleAtoi(value, &options.memory_bytes) ||
          options.memory_bytes < 1) {
        return absl::StrCat("--memory must be a number of bytes; got ", value);
      }
    } else {
      return absl::StrCat(
          "expected --dispatcher, --listen, --advertise, --cpu or --memory; "
          "got ",
          name);
    }
  }
  if (options.dispatcher.empty()) return "expected --dispatcher HOST:PORT";
  return std::nullopt;
}

sigset_t EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// Waits for a signal to end, as long as the dispatcher may yet talk to it.
absl::Status AwaitEnd(const service::WorkerServer& worker) {
  const sigset_t signals = EndSignals();
  while (true) {
    const timespec look = absl::ToTimespec(kLook);
    if (sigtimedwait(&signals, nullptr, &look) > 0) return absl::OkStatus();
    const absl::Status refusal = worker.refusal();
    if (!refusal.ok()) return refusal;
  }
}

}  // namespace

int RunWorker(const std::vector<std::string>& args) {
  if (!args.empty() && (args[0] == "--help" || args[0] == "help")) {
    std::cout << kHelp;
    return 0;
  }
  service::WorkerServer::Options options;
  const std::optional<std::string> problem = Parse(args, options);
  if (problem.has_value()) return Usage(*problem);
  const session::HostLimits limits = session::FindHostLimits();
  if (options.cpus == 0) options.cpus = static_cast<int>(limits.cpus);
  if (options.memory_bytes == 0) options.memory_bytes = limits.memory_bytes / 2;
  options.version = session::kVersion;
  // Before there are other threads, so that none of them takes the signals.
  const sigset_t signals = EndSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  absl::StatusOr<std::unique_ptr<service::WorkerServer>> worker =
      service::WorkerServer::Start(std::move(options));
  if (!worker.ok()) {
    std::cerr << "penstock worker: " << worker.status().message() << "\n";
    return 1;
  }
  std::cout << "worker ready at " << (*worker)->address() << std::endl;
  const absl::Status end = AwaitEnd(**worker);
  if (!end.ok()) {
    std::cerr << "penstock worker: " << end.message() << "\n";
    return 1;
  }
  std::thread([signals] {
    int signal = 0;
    if (sigwait(&signals, &signal) == 0) _exit(128 + signal);
  }).detach();
  (*worker)->Drain();
  if (!(*worker)->WaitUntilDrained(kDrainTime)) {
    std::cerr << "penstock worker: the dispatcher did not take its work back; "
                 "it will notice\n";
  }
  std::cout.flush();
  // What is open ends with the process.
  _exit(0);
}

}  // namespace penstock
