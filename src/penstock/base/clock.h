// Time as a value that tests can set.
#pragma once

#include <cstdint>

namespace penstock {

// A source of time. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds since an arbitrary fixed point; never goes back.
  virtual int64_t NowNanos() const = 0;
};

// The machine's steady clock; lives for ever.
const Clock& SteadyClock();

// A cheap tick counter for measuring intervals on one thread (13 ns on x86),
// and the length of a tick, calibrated on first use.
uint64_t Ticks();
double NanosPerTick();

}  // namespace penstock
