// UTF-8, read as Unicode recommends: what is not well-formed counts as one
// replacement character for each maximal part of a character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::functions {

inline constexpr int32_t kReplacement = 0xFFFD;
inline constexpr int32_t kMaxCodePoint = 0x10FFFF;

// Whether a byte goes on with the character of the byte before it.
inline bool IsTrail(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// The code point at text[at], which is moved behind it; -1 if it is ill-formed.
// REQUIRES: at < text.size().
inline int32_t NextCodePoint(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at++);
  if (lead < 0x80) return lead;
  int more;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  int32_t code;
  if (lead >= 0xC2 && lead <= 0xDF) {
    more = 1;
    code = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    more = 2;
    code = lead & 0x0F;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    more = 3;
    code = lead & 0x07;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return -1;
  }
  for (; more > 0; --more) {
    if (at >= text.size() || byte(at) < low || byte(at) > high) return -1;
    code = (code << 6) | (byte(at++) & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return code;
}

// Writes a code point, and gives the place behind it. REQUIRES: room for four
// bytes, and 0 <= code <= kMaxCodePoint.
inline char* WriteCodePoint(int32_t code, char* out) {
  if (code < 0x80) {
    *out++ = static_cast<char>(code);
  } else if (code < 0x800) {
    *out++ = static_cast<char>(0xC0 | (code >> 6));
    *out++ = static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    *out++ = static_cast<char>(0xE0 | (code >> 12));
    *out++ = static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    *out++ = static_cast<char>(0x80 | (code & 0x3F));
  } else {
    *out++ = static_cast<char>(0xF0 | (code >> 18));
    *out++ = static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    *out++ = static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    *out++ = static_cast<char>(0x80 | (code & 0x3F));
  }
  return out;
}

inline void AppendCodePoint(int32_t code, std::string& out) {
  char bytes[4];
  out.append(bytes, WriteCodePoint(code, bytes) - bytes);
}

// `text`, or `repaired` made of it if it is ill-formed: U+FFFD in the place of
// what is no character.
inline std::string_view WellFormed(std::string_view text,
                                   std::string& repaired) {
  bool is_ill = false;
  for (size_t at = 0; at < text.size() && !is_ill;) {
    is_ill = NextCodePoint(text, at) < 0;
  }
  if (!is_ill) return text;
  repaired.clear();
  for (size_t at = 0; at < text.size();) {
    const int32_t code = NextCodePoint(text, at);
    AppendCodePoint(code < 0 ? kReplacement : code, repaired);
  }
  return repaired;
}

}  // namespace penstock::functions
