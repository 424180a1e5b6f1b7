// What a node that pads was given and what it gave: how much of it is padding,
// how long its elements are, how many shapes its batches have.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "penstock/base/mutex.h"

namespace penstock::engine {

// Totals of one node over all its streams. Thread-safe.
//
// Lengths are exact below 64. Longer ones are counted as the longest of their
// class, which is at most 1/32 longer.
class PaddingStats final {
 public:
  static constexpr size_t kMaxShapes = 4096;

  struct Counts {
    uint64_t batches = 0;
    uint64_t items = 0;         // of elements
    uint64_t padded_items = 0;  // of batches
    uint64_t shapes = 0;        // distinct; more than kMaxShapes are not told
    // Length and rows, by length.
    std::vector<std::pair<int64_t, uint64_t>> lengths;
  };

  // Has what is added from now on added to `total` as well.
  void AddTo(std::shared_ptr<PaddingStats> total) ABSL_LOCKS_EXCLUDED(mutex_);

  // A batch whose shapes have the hash `shape`.
  void Add(uint64_t items, uint64_t padded_items, uint64_t shape,
           absl::Span<const int64_t> lengths) ABSL_LOCKS_EXCLUDED(mutex_);

  Counts Get() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  Counts counts_ ABSL_GUARDED_BY(mutex_);  // without shapes and lengths
  absl::flat_hash_set<uint64_t> shapes_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> rows_ ABSL_GUARDED_BY(mutex_);  // by class
  std::shared_ptr<PaddingStats> total_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::engine
