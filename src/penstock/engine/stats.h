// Counters of what each node did. Ticked by Stream::Next(); operator authors
// write none.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::engine {

// Totals of one node over all its streams. Written with relaxed adds, rarely:
// streams gather in StreamCounters first.
struct NodeStats {
  bool is_counting = true;  // constant while streams run
  std::atomic<uint64_t> rows{0};
  std::atomic<uint64_t> chunks{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> errors{0};
  std::atomic<uint64_t> self_ticks{0};
  std::atomic<uint64_t> blocked{0};
  std::atomic<uint64_t> io_bytes{0};
};

// What one stream has counted since it last added to the totals. One writer.
struct StreamCounters {
  uint64_t rows = 0;
  uint64_t chunks = 0;
  uint64_t bytes = 0;
  uint64_t errors = 0;
  uint64_t self_ticks = 0;
  uint64_t blocked = 0;
  uint64_t pulls = 0;

  // Adds to `stats` and starts again from zero.
  void Flush(NodeStats& stats);
};

// Charges the time between its ends to `stats` as work of that node, and leaves
// it out of the stream that is being pulled around it.
class WorkTimer final {
 public:
  explicit WorkTimer(NodeStats& stats);
  ~WorkTimer();

 private:
  NodeStats& stats_;
  const uint64_t start_;
};

}  // namespace penstock::engine
