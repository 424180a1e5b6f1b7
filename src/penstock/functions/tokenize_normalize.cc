#include "penstock/functions/tokenize_normalize.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "penstock/functions/string_utf8.h"

namespace penstock::functions {
namespace {

// A unit of Darts' double array.
uint32_t LabelOf(uint32_t unit) { return unit & ((1U << 31) | 0xFF); }
bool HasLeaf(uint32_t unit) { return ((unit >> 8) & 1) == 1; }
uint32_t ValueOf(uint32_t unit) { return unit & ((1U << 31) - 1); }
uint32_t OffsetOf(uint32_t unit) {
  return (unit >> 10) << ((unit & (1U << 9)) >> 6);
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

absl::StatusOr<SpaceNormalizer> SpaceNormalizer::Make(std::string_view charsmap,
                                                      NormalRules rules,
                                                      const PrefixTrie& kept) {
  SpaceNormalizer made;
  made.rules_ = rules;
  made.kept_ = &kept;
  if (charsmap.empty()) return made;
  uint32_t size = 0;
  if (charsmap.size() >= 4) std::memcpy(&size, charsmap.data(), 4);
  if (charsmap.size() < 4 || size % 4 != 0 || size > charsmap.size() - 4) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a model's character map must hold a trie of ", size,
        " bytes, whole units; got ", charsmap.size(), " bytes in all"));
  }
  made.units_.resize(size / 4);
  std::memcpy(made.units_.data(), charsmap.data() + 4, size);
  // Each replacement ends with a zero byte; the last must too.
  made.replacements_ = std::string(charsmap.substr(4 + size));
  made.replacements_.push_back('\0');
  return made;
}

// The longest rule that fits, else one character. Ill-formed bytes become
// U+FFFD one by one.
SpaceNormalizer::Piece SpaceNormalizer::First(std::string_view text) const {
  size_t kept = 0;
  kept_->FindPrefixes(text, [&](int32_t, size_t length) { kept = length; });
  if (kept > 0) return {text.substr(0, kept), kept};
  size_t longest = 0;
  uint32_t value = 0;
  if (!units_.empty()) {
    uint32_t at = OffsetOf(units_[0]);
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<uint8_t>(text[i]);
      at ^= byte;
      if (at >= units_.size() || LabelOf(units_[at]) != byte) break;
      const uint32_t unit = units_[at];
      at ^= OffsetOf(unit);
      if (at >= units_.size()) break;
      if (HasLeaf(unit)) {
        longest = i + 1;
        value = ValueOf(units_[at]);
      }
    }
  }
  if (longest > 0 && value < replacements_.size()) {
    return {std::string_view(replacements_.data() + value), longest};
  }
  size_t at = 0;
  if (NextCodePoint(text, at) < 0) return {"\xEF\xBF\xBD", 1};
  return {text.substr(0, at), at};
}

void SpaceNormalizer::Normalize(std::string_view text, std::string& out) const {
  const std::string_view space =
      rules_.escape_whitespaces ? kSpaceMark : std::string_view(" ");
  if (rules_.remove_extra_whitespaces) {
    while (!text.empty()) {
      const Piece first = First(text);
      if (first.text != " ") break;
      text.remove_prefix(first.length);
    }
  }
  if (text.empty()) return;
  if (rules_.add_dummy_prefix && !rules_.treat_whitespace_as_suffix) {
    out += space;
  }
  bool is_after_space = rules_.remove_extra_whitespaces;
  while (!text.empty()) {
    Piece piece = First(text);
    text.remove_prefix(piece.length);
    while (is_after_space && TakePrefix(piece.text, " ")) {
    }
    if (piece.text.empty()) continue;
    for (char c : piece.text) {
      if (c == ' ') {
        out += space;
      } else {
        out += c;
      }
    }
    is_after_space =
        rules_.remove_extra_whitespaces && piece.text.back() == ' ';
  }
  if (rules_.remove_extra_whitespaces) {
    while (out.size() >= space.size() &&
           std::string_view(out).substr(out.size() - space.size()) == space) {
      out.resize(out.size() - space.size());
    }
  }
  if (rules_.add_dummy_prefix && rules_.treat_whitespace_as_suffix) {
    out += space;
  }
}

}  // namespace penstock::functions
