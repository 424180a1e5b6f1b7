// What was measured of a running iterator, as a plan::Snapshot.
#pragma once

#include <cstdint>
#include <optional>

#include "penstock/session/frame_sender.h"
#include "penstock/snapshot.pb.h"

namespace penstock::session {

// Reads of storage that are under way at once, at most, in all.
inline constexpr int kMaxReadThreads = 64;

// What is known beside the iterator's own counts, of the time since it began.
struct Surroundings {
  uint64_t run = 0;  // the iterator's number
  int64_t time_ns = 0;
  double cores = 1;
  int threads = 1;
  int64_t memory_limit_bytes = 0;
  int64_t engine_cpu_ns = 0;
  int64_t python_cpu_ns = 0;
  int64_t python_processes = 1;
  // Of all processes of the machine; unset: it is of no interest.
  std::optional<int64_t> machine_cpu_ns;
};

plan::Snapshot TakeSnapshot(const FrameSender& sender,
                            const Surroundings& around);

}  // namespace penstock::session
