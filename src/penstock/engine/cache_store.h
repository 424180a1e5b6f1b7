// Rows kept in memory between iterations, by the cache node that keeps them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "penstock/base/mutex.h"
#include "penstock/data/chunk.h"
#include "penstock/engine/memory_budget.h"

namespace penstock::engine {

// A whole pass over an input. Constant once it is in the store.
struct CachedRows {
  std::vector<Chunk> chunks;
  std::vector<int64_t> first_row;  // of each chunk
  int64_t rows = 0;
  std::unique_ptr<Reservation> reservation;
};

// Keeps complete passes until their instance is dropped. Thread-safe.
class CacheStore final {
 public:
  // (instance of the cache node, outer row in a sub-plan)
  using Key = std::pair<uint64_t, uint64_t>;

  // Null until a pass was published.
  std::shared_ptr<const CachedRows> Find(Key key) const;
  // The first complete pass stays; later ones of the same key are dropped.
  void Publish(Key key, std::shared_ptr<const CachedRows> rows);
  void Drop(uint64_t instance);

 private:
  mutable Mutex mutex_;
  std::map<Key, std::shared_ptr<const CachedRows>> entries_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::engine
