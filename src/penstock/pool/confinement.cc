#include "penstock/pool/confinement.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace penstock::pool {
namespace {

constexpr rlim_t kMaxFiles = 1024;
// Of all that the user runs, on Linux: it bounds what keeps on forking.
constexpr rlim_t kMaxProcesses = 4096;
constexpr int kCapabilities = 64;

// Both limits, and never above what was allowed before.
void Limit(decltype(RLIMIT_CORE) what, rlim_t value) {
  rlimit limit;
  if (getrlimit(what, &limit) != 0) return;
  limit.rlim_max = std::min(limit.rlim_max, value);
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  setrlimit(what, &limit);
}

}  // namespace

std::vector<std::string> ConfinedVariables(const Confinement& confinement,
                                           const std::string& directory) {
  std::vector<std::string> all = {
      absl::StrCat("HOME=", directory),
      absl::StrCat("TMPDIR=", directory),
      "PYTHONDONTWRITEBYTECODE=1",
      "PYTHONNOUSERSITE=1",
      absl::StrCat("PENSTOCK_POOL_CONFINED=",
                   confinement.accepts_pickles ? "pickles" : "names"),
  };
  for (const char* name :
       {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "LANG", "LC_ALL", "TZ"}) {
    if (const char* value = std::getenv(name)) {
      all.push_back(absl::StrCat(name, "=", value));
    }
  }
  return all;
}

void ConfineThisProcess(int64_t memory_bytes) {
  setsid();
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_NOFILE, kMaxFiles);
  Limit(RLIMIT_NPROC, kMaxProcesses);
  if (memory_bytes > 0) {
    // Shared memory, which rows travel in, is not counted as data.
    Limit(RLIMIT_DATA, static_cast<rlim_t>(memory_bytes));
    Limit(RLIMIT_FSIZE, static_cast<rlim_t>(memory_bytes));
  }
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // Where root has started it: what exec() would give back goes first.
  for (int each = 0; each < kCapabilities; ++each) {
    prctl(PR_CAPBSET_DROP, each, 0, 0, 0);
  }
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  syscall(SYS_capset, &header, none);
}

void HideThisProcess() { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

}  // namespace penstock::pool
