#include "penstock/session/host_limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock::session {
namespace {

std::optional<double> Number(absl::string_view text) {
  double value;
  if (absl::SimpleAtod(absl::StripAsciiWhitespace(text), &value)) return value;
  return std::nullopt;
}

std::optional<double> ReadNumber(const ReadText& read,
                                 const std::string& path) {
  const std::optional<std::string> text = read(path);
  return text.has_value() ? Number(*text) : std::nullopt;
}

// The group's path and those above it: a limit may be set on any of them.
std::vector<std::string> WithParents(std::string path) {
  std::vector<std::string> paths;
  while (true) {
    paths.push_back(path == "/" ? "" : path);
    const size_t slash = path.rfind('/');
    if (path.empty() || path == "/" || slash == std::string::npos) break;
    path = path.substr(0, slash);
  }
  return paths;
}

// Of controller `name` ("" for v2) in /proc/self/cgroup.
std::optional<std::string> GroupOf(const ReadText& read,
                                   absl::string_view name) {
  const std::optional<std::string> text = read("/proc/self/cgroup");
  if (!text.has_value()) return std::nullopt;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (name.empty() ? parts[1].empty() && parts[0] == "0" : false) {
      return parts[2];
    }
    for (absl::string_view controller : absl::StrSplit(parts[1], ',')) {
      if (!name.empty() && controller == name) return parts[2];
    }
  }
  return std::nullopt;
}

void Lower(std::optional<double>& limit, std::optional<double> value) {
  if (!value.has_value() || *value <= 0) return;
  limit = limit.has_value() ? std::min(*limit, *value) : *value;
}

std::optional<double> CpuQuota(const ReadText& read) {
  std::optional<double> quota;
  for (const std::string& group :
       WithParents(GroupOf(read, "").value_or("/"))) {
    const std::optional<std::string> text =
        read(absl::StrCat("/sys/fs/cgroup", group, "/cpu.max"));
    if (!text.has_value()) continue;
    const std::vector<std::string> parts =
        absl::StrSplit(absl::StripAsciiWhitespace(*text), ' ');
    if (parts.size() != 2) continue;
    const std::optional<double> used = Number(parts[0]);
    const std::optional<double> period = Number(parts[1]);
    if (used.has_value() && period.value_or(0) > 0)
      Lower(quota, *used / *period);
  }
  for (const std::string& group :
       WithParents(GroupOf(read, "cpu").value_or("/"))) {
    const std::string base = absl::StrCat("/sys/fs/cgroup/cpu", group);
    const auto used = ReadNumber(read, base + "/cpu.cfs_quota_us");
    const auto period = ReadNumber(read, base + "/cpu.cfs_period_us");
    if (used.value_or(0) > 0 && period.value_or(0) > 0) {
      Lower(quota, *used / *period);
    }
  }
  return quota;
}

std::optional<double> MemoryLimit(const ReadText& read) {
  std::optional<double> limit;
  for (const std::string& group :
       WithParents(GroupOf(read, "").value_or("/"))) {
    Lower(limit, ReadNumber(read, absl::StrCat("/sys/fs/cgroup", group,
                                               "/memory.max")));
  }
  for (const std::string& group :
       WithParents(GroupOf(read, "memory").value_or("/"))) {
    Lower(limit, ReadNumber(read, absl::StrCat("/sys/fs/cgroup/memory", group,
                                               "/memory.limit_in_bytes")));
  }
  return limit;
}

int64_t RanksOnHost(const ReadVariable& variable) {
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                           "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}) {
    const std::optional<std::string> text = variable(name);
    int64_t ranks;
    if (text.has_value() && absl::SimpleAtoi(*text, &ranks) && ranks > 0) {
      return ranks;
    }
  }
  return 1;
}

std::optional<std::string> ReadRealFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

HostLimits FindHostLimits(int64_t usable_cpus, int64_t machine_memory_bytes,
                          const ReadText& read, const ReadVariable& variable) {
  auto cpus = static_cast<double>(usable_cpus);
  if (const auto quota = CpuQuota(read)) cpus = std::min(cpus, *quota);
  auto memory = static_cast<double>(machine_memory_bytes);
  if (const auto limit = MemoryLimit(read)) memory = std::min(memory, *limit);
  const auto ranks = static_cast<double>(RanksOnHost(variable));
  HostLimits limits;
  limits.cpus =
      std::max<int64_t>(1, static_cast<int64_t>(std::ceil(cpus / ranks)));
  limits.memory_bytes = static_cast<int64_t>(memory / ranks);
  return limits;
}

HostLimits FindHostLimits() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int64_t cpus = sysconf(_SC_NPROCESSORS_ONLN);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) cpus = CPU_COUNT(&mask);
  const int64_t memory =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return FindHostLimits(
      cpus, memory, ReadRealFile, [](const std::string& name) {
        const char* text = std::getenv(name.c_str());
        return text != nullptr ? std::optional<std::string>(text)
                               : std::nullopt;
      });
}

}  // namespace penstock::session
