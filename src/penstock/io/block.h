// Bytes that keep themselves alive.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "penstock/base/mutex.h"

namespace penstock::io {

// A range of bytes and a share in the memory they lie in. Copies are cheap and
// share; the memory goes when its last owner does. The bytes never change once
// a block has been handed out, so blocks may be read from any thread.
struct Block {
  std::shared_ptr<const void> owner;
  std::string_view bytes;
};

// Recycles the memory of blocks of one size. Reading into fresh pages is four
// times slower than into used ones, and whether malloc returns fresh pages
// depends on what else the process does. Thread-safe.
//
// Blocks may outlive their pool: those still held are freed by their last
// owner.
class BlockPool final {
 public:
  // Keeps at most `max_idle` blocks that nobody uses.
  BlockPool(size_t block_bytes, size_t max_idle);

  // `num_bytes` of memory with unspecified contents. A request for less than
  // half a block, or for more than one, gets memory of its own size: a small
  // file must not pin a large block.
  std::shared_ptr<char> Allocate(size_t num_bytes);

  size_t block_bytes() const { return block_bytes_; }

 private:
  struct Idle {
    Mutex mutex;
    std::vector<std::unique_ptr<char[]>> blocks ABSL_GUARDED_BY(mutex);
  };

  const size_t block_bytes_;
  const size_t max_idle_;
  const std::shared_ptr<Idle> idle_ = std::make_shared<Idle>();
};

}  // namespace penstock::io
