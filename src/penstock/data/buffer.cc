#include "penstock/data/buffer.h"

#include <cstdlib>
#include <new>

#include "penstock/data/align.h"

namespace penstock {

Buffer Buffer::Allocate(size_t size) {
  const size_t rounded = RoundUp(size);
  void* memory = std::aligned_alloc(kAlignment, rounded ? rounded : kAlignment);
  if (memory == nullptr) throw std::bad_alloc();
  return Buffer(
      Owner(memory, [](const void* p) { std::free(const_cast<void*>(p)); }),
      memory, size);
}

}  // namespace penstock
