// The bytes of tf.train.Example and SequenceExample, read where they lie. The
// messages are maps of lists; as objects they would cost an allocation per key
// and per value, and the format is small.
//
//   Example         features = 1
//   SequenceExample context = 1 (Features), feature_lists = 2
//   Features        feature = 1: map of key = 1 to value = 2 (Feature)
//   FeatureLists    feature_list = 1: map of key = 1 to value = 2 (FeatureList)
//   FeatureList     feature = 1 (Feature), repeated
//   Feature         one of bytes_list = 1, float_list = 2, int64_list = 3
//   each list       value = 1, repeated; numbers packed or not
//
// Nothing here allocates, and nothing reads outside the bytes it is given.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "penstock/data/dtype.h"

namespace penstock::functions {

// A run of bytes that is read from the front.
struct Wire {
  const uint8_t* at = nullptr;
  const uint8_t* end = nullptr;

  static Wire Of(std::string_view bytes) {
    const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
    return {begin, begin + bytes.size()};
  }
  bool is_done() const { return at == end; }
  size_t left() const { return static_cast<size_t>(end - at); }
};

inline constexpr uint8_t DelimitedTag(int field) { return field << 3 | 2; }

// The value of a varint of up to eight bytes, which lie in `word` from its
// lowest byte on; those above are zero.
inline uint64_t FromVarintBytes(uint64_t word) {
  word &= 0x7f7f7f7f7f7f7f7fu;
  word = (word & 0x007f007f007f007fu) | (word & 0x7f007f007f007f00u) >> 1;
  word = (word & 0x00003fff00003fffu) | (word & 0x3fff00003fff0000u) >> 2;
  return (word & 0x000000000fffffffu) | (word & 0x0fffffff00000000u) >> 4;
}

bool ReadLongVarint(Wire& wire, uint64_t& value);

// False if it is cut off or longer than ten bytes.
inline bool ReadVarint(Wire& wire, uint64_t& value) {
  if (wire.at < wire.end && *wire.at < 0x80) {
    value = *wire.at++;
    return true;
  }
  if (wire.left() < 8) return ReadLongVarint(wire, value);
  // Up to eight bytes at once: the first without its top bit is the last one.
  uint64_t word;
  std::memcpy(&word, wire.at, 8);
  const uint64_t stops = ~word & 0x8080808080808080u;
  if (stops == 0) return ReadLongVarint(wire, value);
  value = FromVarintBytes(word & (stops ^ (stops - 1)));
  wire.at += (std::countr_zero(stops) + 1) / 8;
  return true;
}

// The next bytes, as many as a length before them says.
inline bool ReadDelimited(Wire& wire, Wire& part) {
  uint64_t length;
  if (!ReadVarint(wire, length) || length > wire.left()) return false;
  part = {wire.at, wire.at + length};
  wire.at += length;
  return true;
}

// Passes over a field that nobody asked for, its tag included. Groups are not
// taken.
bool SkipField(Wire& wire);

// One entry of a map: a key and a value, in any order, each once.
bool ReadEntry(Wire entry, std::string_view& key, Wire& value);

// What a Feature holds.
enum class ListKind : uint8_t { kNone = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

// "bytes", "float", "int64", "nothing".
std::string_view Name(ListKind kind);
// The list that gives values of this dtype; kNone if there is none.
ListKind ListOf(DType dtype);

// The list of a Feature; kNone if it is empty. False if it is none of the
// three.
inline bool OpenFeature(Wire feature, ListKind& kind, Wire& list) {
  if (feature.is_done()) {
    kind = ListKind::kNone;
    return true;
  }
  const uint8_t tag = *feature.at++;
  if (tag != DelimitedTag(1) && tag != DelimitedTag(2) &&
      tag != DelimitedTag(3)) {
    return false;
  }
  kind = static_cast<ListKind>(tag >> 3);
  return ReadDelimited(feature, list);
}

// At most this many values are in a list of so many bytes.
inline int64_t MostValues(ListKind kind, Wire list) {
  const auto bytes = static_cast<int64_t>(list.left());
  switch (kind) {
    case ListKind::kNone:
      return 0;
    case ListKind::kBytes:
      return bytes / 2;
    case ListKind::kFloat:
      return bytes / 4;
    case ListKind::kInt64:
      return bytes;
  }
  return 0;
}

// Each reads a list to its end and writes its first `room` values; `count` is
// how many there are. False if the list is damaged.
bool ReadFloats(Wire list, float* out, int64_t room, int64_t& count);
bool ReadInt64s(Wire list, int64_t* out, int64_t room, int64_t& count);
// The strings lie where the list does.
bool ReadStrings(Wire list, StringRef* out, int64_t room, int64_t& count);

// The short ways for a Feature that has one value, as writers write it: false
// if it is anything else, or one of more bytes than these take.
// REQUIRES: the Feature is an entry's value, so that at least four bytes of its
// record lie before it.
inline bool ReadOneFloat(const Wire& feature, std::byte* out) {
  uint32_t head;
  if (feature.left() != 8) return false;
  std::memcpy(&head, feature.at, 4);
  if (head != 0x040a0612) return false;  // float_list of 6, packed 4
  std::memcpy(out, feature.at + 4, 4);
  return true;
}

inline bool ReadOneInt64(const Wire& feature, std::byte* out) {
  const size_t size = feature.left();
  if (size < 5 || size > 12) return false;
  uint32_t head;
  std::memcpy(&head, feature.at, 4);
  // int64_list of size - 2, packed size - 4
  if (head != (0x000a001au | (size - 2) << 8 | (size - 4) << 24)) return false;
  // The varint is the last bytes of this word, and with it all of the list if
  // its bytes but the last go on.
  uint64_t word;
  std::memcpy(&word, feature.end - 8, 8);
  const size_t unused = 8 * (12 - size);
  word >>= unused;
  constexpr uint64_t kGoesOn = 0x0080808080808080u;
  if ((word & 0x8080808080808080u) != kGoesOn >> unused) return false;
  const uint64_t value = FromVarintBytes(word);
  std::memcpy(out, &value, 8);
  return true;
}

inline bool ReadOneString(const Wire& feature, std::byte* out) {
  const size_t size = feature.left();
  if (size < 4 || size > 129) return false;
  const uint8_t* at = feature.at;
  if (at[0] != DelimitedTag(1) || at[1] != size - 2 ||
      at[2] != DelimitedTag(1) || at[3] != size - 4) {
    return false;
  }
  const StringRef item = {reinterpret_cast<const char*>(at + 4), size - 4};
  std::memcpy(out, &item, sizeof(item));
  return true;
}

// The one for `kind`; `out` points to items of its dtype.
bool ReadList(ListKind kind, Wire list, std::byte* out, int64_t room,
              int64_t& count);

}  // namespace penstock::functions
