// Counters of what each node did. Ticked by Stream::Next(); operator authors
// write none.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "penstock/engine/cpu_share.h"
#include "penstock/engine/padding_stats.h"
#include "penstock/io/io_stats.h"

namespace penstock::engine {

// Rows by the power of two of a value of theirs: bucket 0 has zeros, bucket b
// values from 2^(b-1) to less than 2^b, the last one all above.
struct Histogram {
  static constexpr int kBuckets = 48;

  std::atomic<uint64_t> rows[kBuckets] = {};

  static int BucketOf(uint64_t value);
  void Add(uint64_t value, uint64_t count) {
    rows[BucketOf(value)].fetch_add(count, std::memory_order_relaxed);
  }
};

// A buffer of rows between one who fills it and one who empties it.
struct QueueStats {
  std::atomic<uint64_t> capacity{0};   // rows; 0: not known
  std::atomic<uint64_t> row_ticks{0};  // rows held, integrated over time
  std::atomic<uint64_t> was_empty{0};  // times that nothing was there to take
  std::atomic<uint64_t> was_full{0};   // times that there was no room
};

// Totals of one node over all its streams. Written with relaxed adds, rarely:
// streams gather in StreamCounters first.
struct NodeStats {
  bool is_counting = true;  // constant while streams run
  std::atomic<uint64_t> rows{0};
  std::atomic<uint64_t> chunks{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> errors{0};
  // Inside, inputs left out: by the clock, and when a processor ran it.
  std::atomic<uint64_t> self_ticks{0};
  std::atomic<uint64_t> cpu_ticks{0};
  // Of its streams: after they had to wait for input or storage, until they
  // were asked again; and after they gave rows, until they were asked for more.
  std::atomic<uint64_t> wait_in_ticks{0};
  std::atomic<uint64_t> wait_out_ticks{0};
  std::atomic<uint64_t> blocked{0};
  // How it runs now: tasks at once (0: one), and files or rows that there are,
  // where only the running stream knows (0: not known).
  std::atomic<uint64_t> parallelism{0};
  std::atomic<uint64_t> total{0};
  std::atomic<bool> is_inline{false};  // though it may have several tasks
  // Work that others do for it: on other threads, and in Python processes.
  std::atomic<uint64_t> tasks{0};
  std::atomic<uint64_t> task_ticks{0};
  std::atomic<uint64_t> python_nanos{0};
  std::atomic<uint64_t> cache_hits{0};    // rows that came out of a cache
  std::atomic<uint64_t> cache_misses{0};  // rows that went into one
  std::atomic<uint64_t> cache_bytes{0};
  std::atomic<uint64_t> largest_row{0};  // bytes, by the mean of its chunk
  // Of the files that it reads; streams may outlive the run.
  const std::shared_ptr<io::IoStats> io = std::make_shared<io::IoStats>();
  Histogram nanos_per_row;
  Histogram bytes_per_row;
  QueueStats queue;
  PaddingStats padding;  // of nodes that pad

  void SeeRows(uint64_t count, uint64_t row_bytes);
};

// Of a node whose rows a knob has kept (ops/keep.h). Rows that were given again
// are not counted as the node's: it did not compute them.
struct KeptCounts {
  std::atomic<uint64_t> hits{0};    // rows given again
  std::atomic<uint64_t> misses{0};  // rows computed, while the knob was set
  std::atomic<int64_t> held_bytes{0};
  // From the first to the last: nothing below is run any more.
  std::atomic<bool> is_complete{false};
  // When the files that they came from were last looked at; 0: never.
  std::atomic<int64_t> checked_nanos{0};
};

// What one stream has counted since it last added to the totals. One writer.
struct StreamCounters {
  uint64_t rows = 0;
  uint64_t chunks = 0;
  uint64_t bytes = 0;
  uint64_t errors = 0;
  uint64_t self_ticks = 0;
  uint64_t wait_in_ticks = 0;
  uint64_t wait_out_ticks = 0;
  uint64_t blocked = 0;
  uint64_t pulls = 0;
  uint64_t last_flush = 0;  // ticks; kept by Flush()

  // Adds to `stats` and starts again from zero.
  void Flush(NodeStats& stats);
};

// Charges the time between its ends to `stats` as work of that node on `rows`
// rows, and leaves it out of the stream that is being pulled around it.
class WorkTimer final {
 public:
  WorkTimer(NodeStats& stats, int64_t rows);
  ~WorkTimer();

 private:
  NodeStats& stats_;
  const int64_t rows_;
  const uint64_t start_;
};

// Charges the time between its ends to `stats`, of work that is no stream's.
class ChargeTimer final {
 public:
  explicit ChargeTimer(NodeStats& stats);
  ~ChargeTimer();

 private:
  NodeStats& stats_;
  const uint64_t start_;
};

}  // namespace penstock::engine
