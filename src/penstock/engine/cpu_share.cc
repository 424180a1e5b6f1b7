#include "penstock/engine/cpu_share.h"

#include <algorithm>
#include <ctime>

#include "penstock/base/clock.h"

namespace penstock::engine {
namespace {

constexpr double kMinNanos = 2e6;

struct Seen {
  double share = 1;
  uint64_t busy_ticks = 0;  // in slices, since the clock was read
  int64_t cpu_nanos = 0;    // when it was read; 0: not yet
};

thread_local Seen seen;

int64_t ThreadCpuNanos() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

}  // namespace

double CpuShare() { return seen.share; }

SliceTimer::SliceTimer() : start_(Ticks()) {
  if (seen.cpu_nanos == 0) seen.cpu_nanos = ThreadCpuNanos();
}

SliceTimer::~SliceTimer() {
  seen.busy_ticks += Ticks() - start_;
  const double busy = static_cast<double>(seen.busy_ticks) * NanosPerTick();
  if (busy < kMinNanos) return;
  const int64_t cpu = ThreadCpuNanos();
  seen.share =
      std::clamp(static_cast<double>(cpu - seen.cpu_nanos) / busy, 0.0, 1.0);
  seen.cpu_nanos = cpu;
  seen.busy_ticks = 0;
}

}  // namespace penstock::engine
