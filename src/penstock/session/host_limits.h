// What this process may use of the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace penstock::session {

struct HostLimits {
  int64_t cpus = 1;
  int64_t memory_bytes = 0;
};

// Reads a file, or nothing if it is not there.
using ReadText = std::function<std::optional<std::string>(const std::string&)>;
// An environment variable, or nothing.
using ReadVariable =
    std::function<std::optional<std::string>(const std::string&)>;

// The cgroup's CPU quota and memory limit (v2, then v1), the scheduler's mask
// (`usable_cpus`), and the machine's memory, whichever is least; divided by the
// ranks that a launcher started on this host (torchrun, Open MPI, Slurm).
HostLimits FindHostLimits(int64_t usable_cpus, int64_t machine_memory_bytes,
                          const ReadText& read, const ReadVariable& variable);

// Of the real machine.
HostLimits FindHostLimits();

}  // namespace penstock::session
