// The world's time, for those who ask a clock.
#pragma once

#include <cstdint>

#include "penstock/base/clock.h"
#include "sim/world.h"

namespace penstock::sim {

class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(const World& world) : world_(world) {}
  int64_t NowNanos() const override { return world_.now_ms() * 1'000'000; }

 private:
  const World& world_;
};

}  // namespace penstock::sim
