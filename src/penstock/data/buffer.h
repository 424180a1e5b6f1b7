// Bytes with shared ownership, and where new ones come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace penstock {

// What keeps memory alive; nothing is known of it but when it ends.
using Owner = std::shared_ptr<const void>;

// A range of bytes that lives at least as long as the Buffer. Cheap to copy.
// Contents are constant once a second holder exists; the maker fills them
// through mutable_data() before that.
class Buffer final {
 public:
  Buffer() = default;
  Buffer(Owner owner, const void* data, size_t size)
      : owner_(std::move(owner)),
        data_(static_cast<const std::byte*>(data)),
        size_(size) {}

  // 64-byte aligned, uninitialised, from the heap.
  static Buffer Allocate(size_t size);

  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  const Owner& owner() const { return owner_; }

  template <typename T>
  const T* As() const {
    return reinterpret_cast<const T*>(data_);
  }
  // REQUIRES: the caller made this buffer and has given no copy away.
  template <typename T>
  T* MutableAs() {
    return reinterpret_cast<T*>(const_cast<std::byte*>(data_));
  }

  // REQUIRES: begin + size <= this->size().
  Buffer Slice(size_t begin, size_t size) const {
    return Buffer(owner_, data_ + begin, size);
  }

 private:
  Owner owner_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace penstock
