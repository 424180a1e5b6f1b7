#include "penstock/main/up_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "penstock/base/clock.h"
#include "penstock/base/socket.h"
#include "penstock/base/status.h"
#include "penstock/main/server_settings.h"
#include "penstock/main/settings.h"
#include "penstock/main/worker_command.h"
#include "penstock/service/rpc/server.h"

namespace penstock {
namespace {

// What each worker is told as well.
constexpr std::string_view kOfWorkers[] = {
    "cpu",   "memory",     "allow",        "snapshots", "allow-services",
    "spill", "code-allow", "allow-pickle", "python",    "python-memory"};

bool IsOfWorkers(const Setting& setting) {
  return std::ranges::find(kOfWorkers, setting.name) != std::end(kOfWorkers);
}

std::vector<Setting> WithWorkerSettings(std::vector<Setting> own) {
  std::ranges::copy_if(WorkerSchema().settings, std::back_inserter(own),
                       IsOfWorkers);
  return own;
}

const Schema& UpSchema() {
  static const Schema* const schema = new Schema{
      "up",
      "",
      "Runs a dispatcher and some workers on this machine, for trying it out.\n"
      "Those that die are started again; a worker that was told to go stays\n"
      "away. Ctrl-C ends all. Flags that `penstock worker` has, too, are for\n"
      "each worker.\n",
      "penstock up --workers 2\n  ds = "
      "ds.distribute(\"penstock://localhost:5050\")",
      "PENSTOCK_UP_",
      "up",
      WithWorkerSettings({
          {"workers", SettingKind::kNumber, "N", "2", "worker processes"},
          {"listen", SettingKind::kText, "HOST:PORT", "127.0.0.1:5050",
           "where the dispatcher is called; port 0: one that is free"},
          {"state-dir", SettingKind::kText, "DIR", "",
           "what the dispatcher must not forget; none: forgotten at the end"},
          {"log", SettingKind::kSwitch, "", "", "says what all of them do"},
          {"log-json", SettingKind::kSwitch, "", "",
           "the same in lines of JSON"},
          {"json", SettingKind::kSwitch, "", "",
           "prints a line of JSON for each process that is ready"},
          {"parent", SettingKind::kNumber, "PID", "0",
           "ends when that process does; 0: with nobody"},
      })};
  return *schema;
}

constexpr int kMaxWorkers = 256;
constexpr int64_t kReadyNanos = 20'000'000'000;
constexpr int64_t kRestartNanos = 300'000'000;
constexpr int64_t kEndNanos = 35'000'000'000;

struct Process {
  std::string kind;
  std::vector<std::string> args;
  pid_t pid = 0;
  std::string address;
};

int64_t Now() { return SteadyClock().NowNanos(); }

// Starts `penstock KIND ARGS…`; gives where to read what it says.
Descriptor Start(Process& process) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return {};
  Descriptor near(fds[0]);
  Descriptor far(fds[1]);
  std::vector<std::string> words = {"penstock", process.kind};
  words.insert(words.end(), process.args.begin(), process.args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  process.pid = fork();
  if (process.pid == 0) {
    // Ctrl-C is for this command alone, which then ends the others in order.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(far.get(), STDOUT_FILENO);
    execv("/proc/self/exe", argv.data());
    _exit(127);
  }
  process.address.clear();
  return near;
}

// The address in the first line that it says: the last word of it.
bool AwaitReady(Process& process, const Descriptor& output) {
  std::string line;
  const int64_t end = Now() + kReadyNanos;
  while (line.find('\n') == std::string::npos) {
    pollfd watched = {output.get(), POLLIN, 0};
    const int64_t left = (end - Now()) / 1'000'000;
    if (left <= 0 || poll(&watched, 1, static_cast<int>(left)) < 0) break;
    char bytes[512];
    const ssize_t size = read(output.get(), bytes, sizeof(bytes));
    if (size <= 0) break;
    line.append(bytes, static_cast<size_t>(size));
  }
  line = line.substr(0, line.find('\n'));
  const std::vector<std::string> words =
      absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.empty()) return false;
  process.address = words.back();
  return true;
}

void Announce(const Process& process, bool is_json) {
  if (is_json) {
    std::cout << "{\"kind\": \"" << process.kind << "\", \"address\": \""
              << process.address << "\", \"pid\": " << process.pid << "}\n";
  } else {
    std::cout << process.kind << " at " << process.address << ", process "
              << process.pid << "\n";
  }
  std::cout.flush();
}

bool Launch(Process& process, bool is_json) {
  const Descriptor output = Start(process);
  if (process.pid <= 0 || !AwaitReady(process, output)) return false;
  Announce(process, is_json);
  return true;
}

// Ends it and waits, at most until `end`.
void End(Process& process, int64_t end) {
  if (process.pid <= 0) return;
  kill(process.pid, SIGTERM);
  while (Now() < end) {
    if (waitpid(process.pid, nullptr, WNOHANG) != 0) return;
    usleep(5'000);
  }
  kill(process.pid, SIGKILL);
  waitpid(process.pid, nullptr, 0);
}

absl::Status Check(const Settings& settings) {
  PENSTOCK_RETURN_IF_ERROR(ExpectFlagsAlone(settings));
  if (settings.number("workers") > kMaxWorkers) {
    return absl::InvalidArgumentError(
        absl::StrCat(settings.source("workers"), ": expected at most ",
                     kMaxWorkers, "; got ", settings.number("workers")));
  }
  if (!rpc::IsLoopback(settings.text("listen"))) {
    return absl::InvalidArgumentError(absl::StrCat(
        settings.source("listen"), ": expected an address of this machine ",
        "alone, as 127.0.0.1:5050; got '", settings.text("listen"),
        "'\n  For several machines, see `penstock dispatcher` and `penstock ",
        "worker`."));
  }
  return absl::OkStatus();
}

std::string LogFlag(const Settings& settings) {
  if (settings.is_on("log-json")) return "--log-json";
  return settings.is_on("log") ? "--no-log=false" : "--no-log";
}

// Where it listens is said again when it is started anew.
constexpr char kAnyPort[] = "127.0.0.1:0";

// One that is started again comes back where it was, since static shards are
// known by that; somebody else may have the port by then.
bool Relaunch(Process& process, bool is_json) {
  if (Launch(process, is_json)) return true;
  if (process.kind != "worker") return false;
  process.args[1] = kAnyPort;
  return Launch(process, is_json);
}

std::vector<std::string> WorkerArgs(const Settings& settings,
                                    const std::string& dispatcher) {
  std::vector<std::string> args = {"--listen", kAnyPort, "--dispatcher",
                                   dispatcher};
  for (const Setting& each : WorkerSchema().settings) {
    if (!IsOfWorkers(each) || settings.source(each.name).empty()) continue;
    const std::string flag = absl::StrCat("--", std::string(each.name));
    if (each.kind == SettingKind::kSwitch) {
      if (settings.is_on(each.name)) args.push_back(flag);
      continue;
    }
    for (const std::string& value : settings.texts(each.name)) {
      args.insert(args.end(), {flag, value});
    }
  }
  args.push_back(LogFlag(settings));
  return args;
}

}  // namespace

int RunUp(const std::vector<std::string>& args) {
  const ReadResult given = ReadSettings(UpSchema(), args);
  if (!given.settings) return given.exit_code;
  const Settings& settings = *given.settings;
  if (const absl::Status status = Check(settings); !status.ok()) {
    std::cerr << "penstock up: " << status.message() << "\n";
    return 2;
  }
  const bool is_json = settings.is_on("json");
  std::string state_dir = settings.text("state-dir");
  std::string scratch;
  if (state_dir.empty()) {
    char made[] = "/tmp/penstock-up-XXXXXX";
    if (mkdtemp(made) == nullptr) {
      std::cerr << "penstock up: cannot make a folder in /tmp: "
                << std::strerror(errno) << "\n";
      return 1;
    }
    state_dir = scratch = made;
  }
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    sigaddset(&signals, number);
  }
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const Descriptor signaled(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  Descriptor parent;
  if (settings.number("parent") > 0) {
    parent = Descriptor(static_cast<int>(
        syscall(SYS_pidfd_open, settings.number("parent"), 0)));
  }

  Process dispatcher;
  dispatcher.kind = "dispatcher";
  dispatcher.args = {"--listen", settings.text("listen"), "--state-dir",
                     state_dir, LogFlag(settings)};
  const auto num_workers = static_cast<size_t>(settings.number("workers"));
  for (size_t i = 0; i < num_workers; ++i) {
    dispatcher.args.insert(dispatcher.args.end(),
                           {"--workers", "127.0.0.1:%port%"});
  }
  dispatcher.args.insert(dispatcher.args.end(), {"--workers", "*"});
  std::vector<Process> workers(num_workers);
  bool is_up = Launch(dispatcher, is_json);
  if (is_up) {
    // When it is started again, it is where it was.
    dispatcher.args[1] = dispatcher.address;
    for (Process& worker : workers) {
      worker.kind = "worker";
      worker.args = WorkerArgs(settings, dispatcher.address);
      is_up = is_up && Launch(worker, is_json);
      worker.args[1] = worker.address;
    }
  }
  if (is_up && !is_json) {
    std::cout << "ready: penstock://" << dispatcher.address
              << "   (Ctrl-C ends it)\n";
    std::cout.flush();
  }
  bool is_ending = !is_up;
  while (!is_ending) {
    pollfd watched[2] = {{signaled.get(), POLLIN, 0},
                         {parent.get(), POLLIN, 0}};
    poll(watched, parent.is_open() ? 2 : 1, -1);
    if (parent.is_open() && watched[1].revents != 0) break;
    signalfd_siginfo info;
    while (read(signaled.get(), &info, sizeof(info)) == sizeof(info)) {
      is_ending |= info.ssi_signo != SIGCHLD;
    }
    if (is_ending) break;
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      Process* died = pid == dispatcher.pid ? &dispatcher : nullptr;
      for (Process& worker : workers) {
        if (worker.pid == pid) died = &worker;
      }
      if (died == nullptr) continue;
      if (died != &dispatcher && WIFEXITED(status) &&
          WEXITSTATUS(status) == 0) {
        died->pid = 0;  // it was told to go
        continue;
      }
      std::cerr << "penstock up: " << died->kind << " " << pid
                << (WIFSIGNALED(status) ? absl::StrCat(" was ended by signal ",
                                                       WTERMSIG(status))
                                        : absl::StrCat(" ended with code ",
                                                       WEXITSTATUS(status)))
                << "; starting another\n";
      usleep(kRestartNanos / 1000);
      if (!Relaunch(*died, is_json)) {
        std::cerr << "penstock up: the " << died->kind
                  << " cannot be started again\n";
        is_ending = true;
      }
    }
  }
  const int64_t end = Now() + kEndNanos;
  for (Process& worker : workers) {
    if (worker.pid > 0) kill(worker.pid, SIGTERM);
  }
  for (Process& worker : workers) End(worker, end);
  End(dispatcher, end);
  if (!scratch.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(scratch, ignored);
  }
  return is_up ? 0 : 1;
}

}  // namespace penstock
