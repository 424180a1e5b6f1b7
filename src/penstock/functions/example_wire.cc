#include "penstock/functions/example_wire.h"

#include <algorithm>

namespace penstock::functions {
namespace {

constexpr int kMaxVarintBytes = 10;

}  // namespace

bool ReadLongVarint(Wire& wire, uint64_t& value) {
  value = 0;
  for (int i = 0; i < kMaxVarintBytes && wire.at < wire.end; ++i) {
    const uint8_t byte = *wire.at++;
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return true;
  }
  return false;
}

bool SkipField(Wire& wire) {
  uint64_t tag;
  if (!ReadVarint(wire, tag) || tag >> 3 == 0 || tag > UINT32_MAX) return false;
  uint64_t ignored;
  Wire part;
  switch (tag & 7) {
    case 0:
      return ReadVarint(wire, ignored);
    case 1:
      if (wire.left() < 8) return false;
      wire.at += 8;
      return true;
    case 2:
      return ReadDelimited(wire, part);
    case 5:
      if (wire.left() < 4) return false;
      wire.at += 4;
      return true;
    default:
      return false;
  }
}

bool ReadEntry(Wire entry, std::string_view& key, Wire& value) {
  bool has_key = false;
  bool has_value = false;
  while (!entry.is_done()) {
    const uint8_t tag = *entry.at++;
    Wire part;
    if (tag == DelimitedTag(1) && !has_key) {
      if (!ReadDelimited(entry, part)) return false;
      key = {reinterpret_cast<const char*>(part.at), part.left()};
      has_key = true;
    } else if (tag == DelimitedTag(2) && !has_value) {
      if (!ReadDelimited(entry, value)) return false;
      has_value = true;
    } else {
      return false;
    }
  }
  return has_key && has_value;
}

std::string_view Name(ListKind kind) {
  switch (kind) {
    case ListKind::kNone:
      return "nothing";
    case ListKind::kBytes:
      return "bytes";
    case ListKind::kFloat:
      return "float";
    case ListKind::kInt64:
      return "int64";
  }
  return "nothing";
}

ListKind ListOf(DType dtype) {
  switch (dtype) {
    case DType::kString:
      return ListKind::kBytes;
    case DType::kFloat32:
      return ListKind::kFloat;
    case DType::kInt64:
      return ListKind::kInt64;
    default:
      return ListKind::kNone;
  }
}

bool ReadFloats(Wire list, float* out, int64_t room, int64_t& count) {
  count = 0;
  while (!list.is_done()) {
    const uint8_t tag = *list.at++;
    Wire part;
    if (tag == DelimitedTag(1)) {
      if (!ReadDelimited(list, part) || part.left() % 4 != 0) return false;
    } else if (tag == (1 << 3 | 5)) {
      if (list.left() < 4) return false;
      part = {list.at, list.at + 4};
      list.at += 4;
    } else {
      return false;
    }
    const auto values = static_cast<int64_t>(part.left() / 4);
    const int64_t taken = std::min(values, std::max<int64_t>(0, room - count));
    if (taken == 1) {
      std::memcpy(out + count, part.at, 4);
    } else if (taken > 0) {
      std::memcpy(out + count, part.at, taken * 4);
    }
    count += values;
  }
  return true;
}

bool ReadInt64s(Wire list, int64_t* out, int64_t room, int64_t& count) {
  count = 0;
  uint64_t value;
  while (!list.is_done()) {
    const uint8_t tag = *list.at++;
    if (tag == DelimitedTag(1)) {
      Wire part;
      if (!ReadDelimited(list, part)) return false;
      while (!part.is_done()) {
        if (!ReadVarint(part, value)) return false;
        if (count < room) out[count] = static_cast<int64_t>(value);
        ++count;
      }
    } else if (tag == (1 << 3 | 0)) {
      if (!ReadVarint(list, value)) return false;
      if (count < room) out[count] = static_cast<int64_t>(value);
      ++count;
    } else {
      return false;
    }
  }
  return true;
}

bool ReadStrings(Wire list, StringRef* out, int64_t room, int64_t& count) {
  count = 0;
  while (!list.is_done()) {
    Wire part;
    if (*list.at++ != DelimitedTag(1) || !ReadDelimited(list, part)) {
      return false;
    }
    if (count < room) {
      out[count] = {reinterpret_cast<const char*>(part.at), part.left()};
    }
    ++count;
  }
  return true;
}

bool ReadList(ListKind kind, Wire list, std::byte* out, int64_t room,
              int64_t& count) {
  switch (kind) {
    case ListKind::kNone:
      count = 0;
      return true;
    case ListKind::kBytes:
      return ReadStrings(list, reinterpret_cast<StringRef*>(out), room, count);
    case ListKind::kFloat:
      return ReadFloats(list, reinterpret_cast<float*>(out), room, count);
    case ListKind::kInt64:
      return ReadInt64s(list, reinterpret_cast<int64_t*>(out), room, count);
  }
  return false;
}

}  // namespace penstock::functions
