// What reading files took. Relaxed adds, one for each block.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::io {

struct IoStats {
  // As they lie in files: from storage, and those that the kernel held.
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> cached_bytes{0};
  std::atomic<uint64_t> reads{0};  // that went to storage
  // That those took, and opening files, one beside another.
  std::atomic<uint64_t> nanos{0};
  // Of processors, in the threads that wait for them: copies out of the kernel.
  std::atomic<uint64_t> cpu_nanos{0};
  // Files that were opened, with their sizes.
  std::atomic<uint64_t> files{0};
  std::atomic<double> file_bytes{0};
  std::atomic<double> file_bytes_squared{0};
  std::atomic<int64_t> under_way{0};  // reads, those that wait for a thread too
  // Sources of records that are open at once, each with reads of its own.
  std::atomic<int64_t> sources{0};
  std::atomic<int64_t> most_sources{0};
};

}  // namespace penstock::io
