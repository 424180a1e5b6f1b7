// How much of the time that work took a processor really ran it.
//
// Work is timed by a cheap counter that goes on when the thread is set aside
// for others. Reading the thread's CPU clock costs 20 times as much, so it is
// read once in a while and the time between scaled by what it says.
#pragma once

#include <cstdint>

namespace penstock::engine {

// Of this thread: from 0 to 1; 1 until enough was seen.
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
