#include "penstock/main/up_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "penstock/base/clock.h"
#include "penstock/base/socket.h"

namespace penstock {
namespace {

constexpr char kHelp[] =
    R"(penstock up: a service on this machine, for trying it out

  penstock up [--workers 2] [--listen 127.0.0.1:5050] [--cpu N] [--memory BYTES]
              [--state-dir DIR] [--json]

  --workers N       worker processes
  --listen ADDRESS  where the dispatcher listens; port 0: one that is free
  --cpu N           cores for each worker
  --memory BYTES    memory for each worker
  --state-dir DIR   what the dispatcher must not forget; left out: forgotten
                    when it ends
  --json            a line of JSON for each process that is ready

Workers that die are started again. Ctrl-C ends all.

Example:
  penstock up --workers 2
  ds = ds.distribute("penstock://localhost:5050")
)";

constexpr int kMaxWorkers = 256;
constexpr int64_t kReadyNanos = 20'000'000'000;
constexpr int64_t kRestartNanos = 300'000'000;
constexpr int64_t kEndNanos = 35'000'000'000;

struct Flags {
  int workers = 2;
  std::string listen = "127.0.0.1:5050";
  std::string state_dir;
  std::vector<std::string> worker_flags;
  bool is_json = false;
  int parent = 0;  // ends with this process; 0: with nobody
};

struct Process {
  std::string kind;
  std::vector<std::string> args;
  pid_t pid = 0;
  std::string address;
};

int Fail(const std::string& problem) {
  std::cerr << "penstock up: " << problem << "\nTry `penstock up --help`.\n";
  return 2;
}

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

std::optional<int> ReadFlags(const std::vector<std::string>& args,
                             Flags& flags) {
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& name = args[i];
    if (name == "--help") {
      std::cout << kHelp;
      return 0;
    }
    if (name == "--json") {
      flags.is_json = true;
      continue;
    }
    if (i + 1 == args.size()) return Fail("expected a value after " + name);
    const std::string& value = args[++i];
    if (name == "--workers") {
      if (!absl::SimpleAtoi(value, &flags.workers) || flags.workers < 0 ||
          flags.workers > kMaxWorkers) {
        return Fail(absl::StrCat("--workers must be in [0, ", kMaxWorkers,
                                 "]; got ", value));
      }
    } else if (name == "--listen") {
      flags.listen = value;
    } else if (name == "--state-dir") {
      flags.state_dir = value;
    } else if (name == "--cpu" || name == "--memory") {
      flags.worker_flags.push_back(name);
      flags.worker_flags.push_back(value);
    } else if (name == "--parent") {
      if (!absl::SimpleAtoi(value, &flags.parent) || flags.parent <= 0) {
        return Fail("--parent must be a process; got " + value);
      }
    } else {
      return Fail("unknown flag " + name);
    }
  }
  return std::nullopt;
}

}  // namespace

int RunUp(const std::vector<std::string>& args) {
  Flags flags;
  if (const std::optional<int> code = ReadFlags(args, flags)) return *code;
  std::string scratch;
  if (flags.state_dir.empty()) {
    char made[] = "/tmp/penstock-up-XXXXXX";
    if (mkdtemp(made) == nullptr) {
      std::cerr << "penstock up: cannot make a folder in /tmp: "
                << std::strerror(errno) << "\n";
      return 1;
    }
    flags.state_dir = scratch = made;
  }
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    sigaddset(&signals, number);
  }
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const Descriptor signaled(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  Descriptor parent;
  if (flags.parent > 0) {
    parent =
        Descriptor(static_cast<int>(syscall(SYS_pidfd_open, flags.parent, 0)));
  }

  Process dispatcher;
  dispatcher.kind = "dispatcher";
  dispatcher.args = {"--listen", flags.listen, "--state-dir", flags.state_dir};
  std::vector<Process> workers(static_cast<size_t>(flags.workers));
  bool is_up = Launch(dispatcher, flags.is_json);
  if (is_up) {
    // When it is started again, it is where it was.
    dispatcher.args[1] = dispatcher.address;
    for (Process& worker : workers) {
      worker.kind = "worker";
      worker.args = {"--dispatcher", dispatcher.address};
      worker.args.insert(worker.args.end(), flags.worker_flags.begin(),
                         flags.worker_flags.end());
      is_up = is_up && Launch(worker, flags.is_json);
    }
  }
  if (is_up && !flags.is_json) {
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
      std::cerr << "penstock up: " << died->kind << " " << pid
                << (WIFSIGNALED(status) ? absl::StrCat(" was ended by signal ",
                                                       WTERMSIG(status))
                                        : absl::StrCat(" ended with code ",
                                                       WEXITSTATUS(status)))
                << "; starting another\n";
      usleep(kRestartNanos / 1000);
      if (!Launch(*died, flags.is_json)) {
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
