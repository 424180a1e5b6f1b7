// From keys to the places where they stand in a list of keys.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/data/column.h"

namespace penstock::functions {

// Most keys of a table: places are 32-bit numbers, and one means "none".
inline constexpr int64_t kMaxKeys = (int64_t{1} << 31) - 1;

// A string as one word: the bytes themselves of one that has up to eight, a
// hash of a longer one. Two strings of up to eight bytes and of equal size are
// equal if their words are.
inline uint64_t WordOf(std::string_view text);
inline uint64_t WordOf(int64_t key) { return static_cast<uint64_t>(key); }

// Every bit of the result depends on every bit of the word.
inline uint64_t Folded(uint64_t word, uint64_t times = 0xd6e8feb86659fd93ULL) {
  const auto product = static_cast<unsigned __int128>(word) * times;
  return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
}

// An open-addressing table over views of the keys. A slot has the whole key if
// it is an integer or a string of up to eight bytes, so that most look-ups
// touch one line of memory. Immutable once filled; then any thread may find.
template <typename Key>
class LookupTable final {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  // InvalidArgument if two keys are equal. The keys' memory must stay.
  absl::Status Fill(absl::Span<const Key> keys);

  // The place of the key, or kNone.
  uint32_t Find(const Key& key) const {
    const uint64_t word = WordOf(View(key));
    return Find(key, word, Start(word, SizeOf(key)));
  }

  // found(i, place or kNone) for each of the keys, some at a time: all their
  // slots are on their way from memory before the first is looked at.
  template <typename Found>
  void FindAll(const Key* keys, int64_t count, Found&& found) const {
    constexpr int64_t kAtOnce = 16;
    uint64_t words[kAtOnce];
    uint64_t starts[kAtOnce];
    for (int64_t begin = 0; begin < count; begin += kAtOnce) {
      const int64_t some = std::min(kAtOnce, count - begin);
      for (int64_t i = 0; i < some; ++i) {
        const Key& key = keys[begin + i];
        words[i] = WordOf(View(key));
        starts[i] = Start(words[i], SizeOf(key));
        __builtin_prefetch(&slots_[starts[i]]);
      }
      for (int64_t i = 0; i < some; ++i) {
        found(begin + i, Find(keys[begin + i], words[i], starts[i]));
      }
    }
  }
  size_t size() const { return keys_.size(); }

 private:
  struct Slot {
    uint64_t word = 0;
    uint32_t place = kNone;
    uint32_t size = 0;  // of a string, its low bits
  };

  uint32_t Find(const Key& key, uint64_t word, uint64_t at) const {
    const uint32_t size = SizeOf(key);
    for (;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.word == word && slot.size == size && slot.place != kNone &&
          IsEqual(slot.place, key)) {
        return slot.place;
      }
      if (slot.place == kNone) return kNone;
    }
  }

  static std::string_view View(const StringRef& key) { return key.view(); }
  static int64_t View(int64_t key) { return key; }
  static uint32_t SizeOf(const StringRef& key) {
    return static_cast<uint32_t>(key.size);
  }
  static uint32_t SizeOf(int64_t) { return 8; }

  uint64_t Start(uint64_t word, uint32_t size) const {
    return Folded(word ^ (size * 0x9e3779b97f4a7c15ULL)) & mask_;
  }
  bool IsEqual(uint32_t place, const StringRef& key) const {
    return key.size <= 8 || keys_[place].view() == key.view();
  }
  bool IsEqual(uint32_t, int64_t) const { return true; }

  std::vector<Slot> slots_;
  uint64_t mask_ = 0;
  absl::Span<const Key> keys_;
};

inline uint64_t WordOf(std::string_view text) {
  const char* at = text.data();
  const size_t size = text.size();
  const auto load32 = [](const char* from) {
    uint32_t word;
    std::memcpy(&word, from, 4);
    return uint64_t{word};
  };
  const auto load64 = [](const char* from) {
    uint64_t word;
    std::memcpy(&word, from, 8);
    return word;
  };
  if (size <= 8) {
    if (size >= 4) return load32(at) | load32(at + size - 4) << 32;
    if (size == 0) return 0;
    const auto byte = [&](size_t i) {
      return uint64_t{static_cast<uint8_t>(at[i])};
    };
    return byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16;
  }
  uint64_t hash = size * 0x9e3779b97f4a7c15ULL;
  const char* const last = at + size - 8;
  for (; at < last; at += 8) {
    hash = Folded(hash ^ load64(at));
  }
  return Folded(hash ^ load64(last), 0xa0761d6478bd642fULL);
}

}  // namespace penstock::functions
