// What tokenizers remember of the words they have seen.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "absl/types/span.h"
#include "penstock/functions/lookup_table.h"

namespace penstock::functions {

// Words and their numbers, filled while tokenizing. Words that come once the
// places for them are taken are not kept, and none leaves before the cache
// ends: its memory is bounded, and what was found stays. Any number of threads.
class WordCache final {
 public:
  // Longer words are rare, and are not kept.
  static constexpr size_t kMaxBytes = 64;

  WordCache() : slots_(new std::atomic<const Entry*>[kSlots]()) {}
  WordCache(const WordCache&) = delete;
  WordCache& operator=(const WordCache&) = delete;
  ~WordCache() {
    for (size_t i = 0; i < kSlots; ++i)
      ::operator delete(
          const_cast<Entry*>(slots_[i].load(std::memory_order_relaxed)));
  }

  // The numbers of the word; nothing if it is not known. No word has none.
  absl::Span<const int32_t> Find(std::string_view word) const {
    const uint64_t hash = HashOf(word);
    for (size_t i = 0; i < kProbes; ++i) {
      const Entry* entry =
          slots_[(hash + i) % kSlots].load(std::memory_order_acquire);
      if (entry == nullptr) return {};
      if (entry->hash == hash && entry->word() == word) return entry->numbers();
    }
    return {};
  }

  void Add(std::string_view word, absl::Span<const int32_t> numbers) {
    if (word.size() > kMaxBytes) return;
    const uint64_t hash = HashOf(word);
    for (size_t i = 0; i < kProbes; ++i) {
      std::atomic<const Entry*>& slot = slots_[(hash + i) % kSlots];
      if (slot.load(std::memory_order_relaxed) != nullptr) continue;
      void* memory = ::operator new(
          sizeof(Entry) + numbers.size() * sizeof(int32_t) + word.size());
      auto* entry = new (memory) Entry{hash, static_cast<uint32_t>(word.size()),
                                       static_cast<uint32_t>(numbers.size())};
      std::memcpy(entry + 1, numbers.data(), numbers.size() * sizeof(int32_t));
      std::memcpy(
          reinterpret_cast<char*>(entry + 1) + numbers.size() * sizeof(int32_t),
          word.data(), word.size());
      const Entry* none = nullptr;
      if (!slot.compare_exchange_strong(none, entry,
                                        std::memory_order_acq_rel)) {
        ::operator delete(memory);  // another thread was faster
      }
      return;
    }
  }

 private:
  // Followed by the numbers and then the bytes.
  struct Entry {
    uint64_t hash;
    uint32_t size;
    uint32_t count;

    absl::Span<const int32_t> numbers() const {
      return {reinterpret_cast<const int32_t*>(this + 1), count};
    }
    std::string_view word() const {
      return {reinterpret_cast<const char*>(this + 1) + count * sizeof(int32_t),
              size};
    }
  };

  static constexpr size_t kSlots = 1 << 16;
  static constexpr size_t kProbes = 4;

  static uint64_t HashOf(std::string_view word) {
    return Folded(WordOf(word) ^ (word.size() * 0x9e3779b97f4a7c15ULL));
  }

  std::unique_ptr<std::atomic<const Entry*>[]> slots_;
};

}  // namespace penstock::functions
