#include "penstock/io/block.h"

#include <utility>

namespace penstock::io {

BlockPool::BlockPool(size_t block_bytes, size_t max_idle)
    : block_bytes_(block_bytes), max_idle_(max_idle) {}

std::shared_ptr<char> BlockPool::Allocate(size_t num_bytes) {
  if (num_bytes > block_bytes_ || num_bytes < block_bytes_ / 2) {
    return std::shared_ptr<char>(new char[num_bytes],
                                 std::default_delete<char[]>());
  }
  std::unique_ptr<char[]> memory;
  {
    MutexLock lock(&idle_->mutex);
    if (!idle_->blocks.empty()) {
      memory = std::move(idle_->blocks.back());
      idle_->blocks.pop_back();
    }
  }
  if (memory == nullptr) memory.reset(new char[block_bytes_]);
  std::weak_ptr<Idle> weak_idle = idle_;
  auto give_back = [weak_idle = std::move(weak_idle),
                    max_idle = max_idle_](char* bytes) {
    std::unique_ptr<char[]> memory(bytes);
    std::shared_ptr<Idle> idle = weak_idle.lock();
    if (idle == nullptr) return;
    MutexLock lock(&idle->mutex);
    if (idle->blocks.size() < max_idle) {
      idle->blocks.push_back(std::move(memory));
    }
  };
  return std::shared_ptr<char>(memory.release(), std::move(give_back));
}

}  // namespace penstock::io
