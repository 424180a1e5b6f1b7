#include "penstock/session/machine_cpu.h"

#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace penstock::session {
namespace {

// Of a line of /proc/stat: user, nice, system, idle, iowait, irq, softirq,
// steal; the time of guests is in that of users.
constexpr size_t kIdle = 3;
constexpr size_t kWaits = 4;
constexpr size_t kTimes = 8;

}  // namespace

std::optional<int64_t> BusyNanos(absl::string_view stat,
                                 const std::function<bool(int cpu)>& is_ours,
                                 int64_t ticks_per_second) {
  int64_t ticks = 0;
  bool has_any = false;
  for (absl::string_view line : absl::StrSplit(stat, '\n')) {
    if (!absl::ConsumePrefix(&line, "cpu")) break;  // they come first
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    int cpu;
    // The first is of all together.
    if (absl::StartsWith(line, " ") || words.size() <= kTimes ||
        !absl::SimpleAtoi(words[0], &cpu) || !is_ours(cpu)) {
      continue;
    }
    for (size_t i = 0; i < kTimes; ++i) {
      int64_t time;
      if (i == kIdle || i == kWaits) continue;
      if (absl::SimpleAtoi(words[i + 1], &time)) ticks += time;
    }
    has_any = true;
  }
  if (!has_any) return std::nullopt;
  return ticks * (int64_t{1'000'000'000} / ticks_per_second);
}

std::optional<int64_t> MachineCpuNanos(int64_t cpus) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return std::nullopt;
  if (CPU_COUNT(&mask) != cpus) return std::nullopt;
  std::ifstream file("/proc/stat");
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("cpu")) break;  // what follows is long
    text += line + '\n';
  }
  return BusyNanos(
      text, [&](int cpu) { return cpu < CPU_SETSIZE && CPU_ISSET(cpu, &mask); },
      sysconf(_SC_CLK_TCK));
}

}  // namespace penstock::session
