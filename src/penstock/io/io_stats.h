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
  std::atomic<uint64_t> nanos{0};  // that those took, one beside another
  // Files that were opened, with their sizes.
  std::atomic<uint64_t> files{0};
  std::atomic<double> file_bytes{0};
  std::atomic<double> file_bytes_squared{0};
};

}  // namespace penstock::io
