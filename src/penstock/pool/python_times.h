// How long there were calls, by what they waited for.
#pragma once

#include <cstdint>

namespace penstock::pool {

// Wall time in which there were calls.
struct PythonTimes {
  int64_t starting_nanos = 0;   // and no process was ready for them yet
  int64_t computing_nanos = 0;  // and at least one process was at one
  int64_t cpu_nanos = 0;        // of all processes, also of those that ended
};

// Adds them up, phase after phase. One thread at a time.
class PhaseClock final {
 public:
  enum class Phase { kIdle, kStarting, kComputing };  // the last one counts

  bool IsIn(Phase phase) const { return phase == phase_; }

  void Enter(Phase phase, int64_t now_nanos) {
    past_ = Until(now_nanos);
    phase_ = phase;
    since_ = now_nanos;
  }

  PythonTimes Until(int64_t now_nanos) const {
    PythonTimes times = past_;
    const int64_t nanos = now_nanos - since_;
    if (phase_ == Phase::kStarting) times.starting_nanos += nanos;
    if (phase_ == Phase::kComputing) times.computing_nanos += nanos;
    return times;
  }

 private:
  PythonTimes past_;  // before `since_`
  Phase phase_ = Phase::kIdle;
  int64_t since_ = 0;
};

}  // namespace penstock::pool
