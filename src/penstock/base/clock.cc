#include "penstock/base/clock.h"

#include <chrono>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace penstock {
namespace {

int64_t SteadyNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class Steady final : public Clock {
 public:
  int64_t NowNanos() const override { return SteadyNanos(); }
};

#if defined(__x86_64__)
double Calibrate() {
  const int64_t start_ns = SteadyNanos();
  const uint64_t start = __rdtsc();
  int64_t now_ns = start_ns;
  while (now_ns - start_ns < 2'000'000) now_ns = SteadyNanos();
  return static_cast<double>(now_ns - start_ns) /
         static_cast<double>(__rdtsc() - start);
}
#endif

}  // namespace

const Clock& SteadyClock() {
  static const Steady* const clock = new Steady();
  return *clock;
}

#if defined(__x86_64__)
uint64_t Ticks() { return __rdtsc(); }
double NanosPerTick() {
  static const double nanos = Calibrate();
  return nanos;
}
#else
uint64_t Ticks() { return static_cast<uint64_t>(SteadyNanos()); }
double NanosPerTick() { return 1.0; }
#endif

}  // namespace penstock
