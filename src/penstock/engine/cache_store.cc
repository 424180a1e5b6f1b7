#include "penstock/engine/cache_store.h"

namespace penstock::engine {

std::shared_ptr<const CachedRows> CacheStore::Find(Key key) const {
  MutexLock lock(&mutex_);
  auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : it->second;
}

void CacheStore::Publish(Key key, std::shared_ptr<const CachedRows> rows) {
  MutexLock lock(&mutex_);
  entries_.try_emplace(key, std::move(rows));
}

void CacheStore::Drop(uint64_t instance) {
  MutexLock lock(&mutex_);
  entries_.erase(entries_.lower_bound({instance, 0}),
                 entries_.upper_bound({instance, ~uint64_t{0}}));
}

}  // namespace penstock::engine
