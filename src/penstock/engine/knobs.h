// Knobs: what was chosen for a run. Streams read them while they run; others
// may change them at any time. They change speed and never rows.
#pragma once

#include <atomic>
#include <cstdint>

#include "penstock/knobs.pb.h"

namespace penstock::engine {

// Of one node of one run. Whoever chooses stores; streams load when they next
// do something, and never wait for it: all of it relaxed. 0 means not set: the
// engine does as it would alone.
struct NodeKnobs {
  std::atomic<int64_t> parallelism{0};
  std::atomic<int64_t> reorder_rows{0};
  std::atomic<int64_t> buffer_rows{0};
  std::atomic<int64_t> read_depth{0};
  std::atomic<int64_t> read_bytes{0};
  // Rows after the node are kept for later passes, up to as many bytes.
  std::atomic<int64_t> keep_bytes{0};
  // Those in the run's directory, where it has one; else in memory.
  std::atomic<bool> keeps_on_disk{false};
};

struct Run;

// Puts `knobs` in force, and no others: what they do not name is not set. Those
// that the user has chosen are in the plan already. Buffers stay as they are in
// a run in which somebody would see rows being computed earlier.
void SetKnobs(const plan::Knobs& knobs, Run& run);
// What is in force: the user's, and those that were set.
plan::Knobs KnobsInForce(const Run& run);

// `knob`, or `otherwise` where it is not set.
inline int64_t KnobOr(const std::atomic<int64_t>& knob, int64_t otherwise) {
  const int64_t value = knob.load(std::memory_order_relaxed);
  return value > 0 ? value : otherwise;
}

}  // namespace penstock::engine
