#include "penstock/pool/python_check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/socket.h"
#include "penstock/pool/confinement.h"

namespace penstock::pool {
namespace {

constexpr int64_t kPatienceNanos = 30'000'000'000;
constexpr size_t kMaxSaid = 4096;

// Says what is missing, or nothing.
constexpr char kScript[] = R"(
import sys

def check(version):
    if sys.version_info < (3, 10):
        return "Python 3.10 or newer; got " + sys.version.split()[0]
    try:
        import numpy
    except ImportError as error:
        return f"numpy; got {error!r}"
    try:
        import penstock
    except ImportError as error:
        return f"the package penstock; got {error!r}"
    if version and penstock.__version__ != version:
        return f"penstock {version}; got {penstock.__version__}"
    return ""

print(check(sys.argv[1]))
)";

// What it prints, until it ends or `end` comes.
std::string Said(const Descriptor& output, int64_t end) {
  std::string said;
  while (said.size() < kMaxSaid) {
    pollfd watched = {output.get(), POLLIN, 0};
    const int64_t left = (end - SteadyClock().NowNanos()) / 1'000'000;
    if (left <= 0) break;
    if (poll(&watched, 1, static_cast<int>(left)) < 0 && errno != EINTR) break;
    char bytes[512];
    if (watched.revents == 0) continue;
    const ssize_t size = read(output.get(), bytes, sizeof(bytes));
    if (size <= 0) break;
    said.append(bytes, static_cast<size_t>(size));
  }
  return said;
}

}  // namespace

absl::Status CheckPython(const std::string& interpreter,
                         const std::string& version) {
  const auto unfit = [&](absl::string_view expected) {
    return absl::FailedPreconditionError(
        absl::StrCat("the interpreter '", interpreter, "' must have ", expected,
                     "\n  Name another one with --python."));
  };
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return absl::UnavailableError("no pipe");
  const Descriptor near(fds[0]);
  Descriptor far(fds[1]);
  std::vector<std::string> words = {interpreter, "-c", kScript, version};
  std::vector<std::string> variables = ConfinedVariables({}, "/");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  for (std::string& each : variables) environment.push_back(each.data());
  environment.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return absl::UnavailableError("no process");
  if (pid == 0) {
    ConfineThisProcess(/*memory_bytes=*/0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(far.get(), STDOUT_FILENO);
    dup2(far.get(), STDERR_FILENO);
    if (chdir("/") == 0) {
      execve(arguments[0], arguments.data(), environment.data());
    }
    _exit(127);
  }
  far = Descriptor();
  const std::string said =
      Said(near, SteadyClock().NowNanos() + kPatienceNanos);
  kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (said.empty()) {
    return unfit("a Python that starts; got a program that does not");
  }
  const absl::string_view missing = absl::StripAsciiWhitespace(said);
  return missing.empty() ? absl::OkStatus() : unfit(missing);
}

}  // namespace penstock::pool
