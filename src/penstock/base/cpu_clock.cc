#include "penstock/base/cpu_clock.h"

#include <ctime>

namespace penstock {
namespace {

int64_t NanosOf(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

}  // namespace

int64_t ThreadCpuNanos() { return NanosOf(CLOCK_THREAD_CPUTIME_ID); }

int64_t ProcessCpuNanos() { return NanosOf(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace penstock
