#include "penstock/engine/cpu_share.h"

#include <algorithm>

#include "penstock/base/clock.h"
#include "penstock/base/cpu_clock.h"

namespace penstock::engine {
namespace {

constexpr double kMinNanos = 2e6;

thread_local ShareMeter meter;

}  // namespace

void ShareMeter::Begin(int64_t cpu_nanos) {
  cpu_nanos_ = cpu_nanos;
  has_begun_ = true;
}

bool ShareMeter::Add(double busy_nanos) {
  busy_nanos_ += busy_nanos;
  return busy_nanos_ >= kMinNanos;
}

void ShareMeter::Judge(int64_t cpu_nanos) {
  share_ = std::clamp(static_cast<double>(cpu_nanos - cpu_nanos_) / busy_nanos_,
                      0.0, 1.0);
  cpu_nanos_ = cpu_nanos;
  busy_nanos_ = 0;
}

double CpuShare() { return meter.share(); }

SliceTimer::SliceTimer() : start_(Ticks()) {
  if (!meter.has_begun()) meter.Begin(ThreadCpuNanos());
}

SliceTimer::~SliceTimer() {
  const double busy = static_cast<double>(Ticks() - start_) * NanosPerTick();
  if (meter.Add(busy)) meter.Judge(ThreadCpuNanos());
}

}  // namespace penstock::engine
