#include "penstock/pool/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/base/status.h"

extern char** environ;

namespace penstock::pool {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr uint64_t kMaxText = 1 << 20;
constexpr int kHangUpMillis = 500;
// Where the child finds its descriptors.
constexpr int kSocketFd = 3;
constexpr int kProgressFd = 4;
constexpr int kArchiveFd = 5;
constexpr int kFds = 6;
// A message is written at once; one that does not end is no message.
constexpr int kMessageMillis = 2'000;

absl::Status Failed(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(
      "cannot start a Python process: ", what, ": ", std::strerror(errno)));
}

// The environment with what a process beside many of its kind needs.
std::vector<std::string> EnvironmentFor(const PythonCommand& command) {
  // Threads of libraries would compete with the other processes. Large values
  // come and go with each row: memory that is given back to the kernel each
  // time costs more than a photograph's decoding.
  std::map<std::string, std::string> defaults = {
      {"OMP_NUM_THREADS", "1"},
      {"MALLOC_MMAP_THRESHOLD_", "33554432"},
      {"MALLOC_TRIM_THRESHOLD_", "134217728"}};
  std::vector<std::string> all;
  if (command.confinement.has_value()) {
    all = ConfinedVariables(*command.confinement, command.directory);
    for (const auto& [name, value] : defaults) {
      all.push_back(absl::StrCat(name, "=", value));
    }
    return all;
  }
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text = *each;
    if (text.substr(0, 11) == "PYTHONPATH=") continue;
    defaults.erase(std::string(text.substr(0, text.find('='))));
    all.emplace_back(text);
  }
  all.push_back(absl::StrCat("PYTHONPATH=", absl::StrJoin(command.path, ":")));
  for (const auto& [name, value] : defaults) {
    all.push_back(absl::StrCat(name, "=", value));
  }
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct Child {
  char** arguments;
  char** environment;
  const char* directory;
  int fds[kFds];  // what becomes descriptors 0 to 5
  bool is_confined;
  int64_t memory_bytes;
};

// After fork(): nothing here may allocate.
[[noreturn]] void Become(const Child& child) {
  if (child.is_confined) ConfineThisProcess(child.memory_bytes);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Out of the way of their places first.
  int fds[kFds];
  for (int i = 0; i < kFds; ++i) fds[i] = fcntl(child.fds[i], F_DUPFD, 16);
  for (int i = 0; i < kFds; ++i) dup2(fds[i], i);
  close_range(kFds, ~0U, 0);
  for (const int number : {SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (chdir(child.directory) != 0) {
    // It may have been removed since; functions that need it will say so.
  }
  execve(child.arguments[0], child.arguments, child.environment);
  _exit(127);
}

}  // namespace

absl::StatusOr<WorkerProcess> WorkerProcess::Start(const PythonCommand& given) {
  PythonCommand command = given;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return Failed("no socket");
  }
  WorkerProcess process;
  process.socket_ = Descriptor(pair[0]);
  const Descriptor far(pair[1]);
  const Descriptor page(memfd_create("penstock-progress", MFD_CLOEXEC));
  if (!page.is_open() || ftruncate(page.get(), kPageBytes) != 0) {
    return Failed("no shared memory");
  }
  void* memory = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      page.get(), 0);
  if (memory == MAP_FAILED) return Failed("cannot map memory");
  process.progress_ = std::shared_ptr<Progress>(
      static_cast<Progress*>(memory),
      [](Progress* progress) { munmap(progress, kPageBytes); });
  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (command.confinement.has_value()) {
    command.directory = absl::StrCat(command.confinement->scratch, "/XXXXXX");
    if (mkdtemp(command.directory.data()) == nullptr) {
      return Failed(absl::StrCat("no folder ", command.directory));
    }
    process.directory_ = command.directory;
  }

  std::vector<std::string> words = {command.interpreter, "-m",
                                    "penstock._pool_worker"};
  std::vector<std::string> variables = EnvironmentFor(command);
  std::vector<char*> arguments = Pointers(words);
  std::vector<char*> environment = Pointers(variables);
  Child child = {
      arguments.data(),
      environment.data(),
      command.directory.c_str(),
      {null.get(), null.get(), null.get(), far.get(), page.get(), null.get()},
      process.is_confined(),
      0};
  static_assert(kSocketFd == 3 && kProgressFd == 4 && kArchiveFd == 5);
  if (command.confinement.has_value()) {
    child.memory_bytes = command.confinement->memory_bytes;
    if (command.confinement->archive_fd >= 0) {
      child.fds[kArchiveFd] = command.confinement->archive_fd;
    }
  }
  if (command.stdout_fd >= 0) child.fds[1] = command.stdout_fd;
  if (command.stderr_fd >= 0) child.fds[2] = command.stderr_fd;
  const pid_t pid = fork();
  if (pid < 0) return Failed("no process");
  if (pid == 0) Become(child);
  process.pid_.value = pid;
  return process;
}

WorkerProcess::~WorkerProcess() { End(); }

absl::Status WorkerProcess::Send(const ToWorker& message, int fd_to_send) {
  return SendAll(socket_.get(),
                 {reinterpret_cast<const char*>(&message), sizeof(message)},
                 {fd_to_send});
}

absl::Status WorkerProcess::Receive(FromWorker& message,
                                    std::vector<Descriptor>& fds,
                                    std::string& text) {
  const int patience = is_confined() ? kMessageMillis : -1;
  PENSTOCK_RETURN_IF_ERROR(ReceiveAll(socket_.get(),
                                      reinterpret_cast<char*>(&message),
                                      sizeof(message), &fds, patience));
  if (message.kind != FromWorker::kFailed) return absl::OkStatus();
  if (message.bytes > kMaxText) {
    return absl::CancelledError("a Python process says too much");
  }
  text.resize(message.bytes);
  return ReceiveAll(socket_.get(), text.data(), text.size(), nullptr, patience);
}

Progress WorkerProcess::progress() const {
  // Written by another process: each word is read as it is.
  return {__atomic_load_n(&progress_->call, __ATOMIC_RELAXED),
          __atomic_load_n(&progress_->row, __ATOMIC_RELAXED)};
}

std::string WorkerProcess::End(bool has_hung_up) {
  if (pid_.value <= 0) return "";
  // Its number stays its own until it is waited for.
  const auto has_ended = [this] {
    siginfo_t info = {};
    waitid(P_PID, static_cast<id_t>(pid_.value), &info,
           WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid != 0;
  };
  for (int i = 0; has_hung_up && !has_ended() && i < kHangUpMillis; ++i) {
    usleep(1000);
  }
  if (!has_ended()) kill(pid_.value, SIGKILL);
  // What it has started goes with it, as far as it has stayed in its session.
  if (is_confined()) kill(-pid_.value, SIGKILL);
  int status = 0;
  while (waitpid(pid_.value, &status, 0) < 0 && errno == EINTR) {
  }
  pid_.value = 0;
  if (is_confined()) {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    return absl::StrCat("was killed by SIG", name != nullptr ? name : "?");
  }
  return absl::StrCat("ended with exit code ", WEXITSTATUS(status));
}

}  // namespace penstock::pool
