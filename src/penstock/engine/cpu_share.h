// How much of the time that work took a processor really ran it.
//
// Work is timed by a cheap counter that goes on when the thread is set aside
// for others. Reading the thread's CPU clock costs 20 times as much, so it is
// read once in a while and the time between scaled by what it says.
#pragma once

#include <cstdint>

namespace penstock::engine {

// What is known of one thread. Not thread-safe.
class ShareMeter final {
 public:
  // From 0 to 1; 1 until enough was seen.
  double share() const { return share_; }

  // Before the first slice: the thread's CPU clock.
  bool has_begun() const { return has_begun_; }
  void Begin(int64_t cpu_nanos);
  // A slice has taken so long. True: there is enough to judge by, and Judge()
  // is to be called with what the CPU clock says now.
  bool Add(double busy_nanos);
  void Judge(int64_t cpu_nanos);

 private:
  double share_ = 1;
  double busy_nanos_ = 0;  // in slices, since the clock was read
  int64_t cpu_nanos_ = 0;  // when it was read
  bool has_begun_ = false;
};

// Of this thread.
double CpuShare();

// Around each slice of work that a thread does.
class SliceTimer final {
 public:
  SliceTimer();
  ~SliceTimer();
  SliceTimer(const SliceTimer&) = delete;
  SliceTimer& operator=(const SliceTimer&) = delete;

 private:
  const uint64_t start_;
};

}  // namespace penstock::engine
