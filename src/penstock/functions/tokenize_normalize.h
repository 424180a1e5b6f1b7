// The text that SentencePiece models know: characters by the model's rules,
// spaces made visible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/functions/tokenize_trie.h"

namespace penstock::functions {

// "▁", which stands for a space.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

struct NormalRules {
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool treat_whitespace_as_suffix = false;
};

// Immutable; any thread may use it.
class SpaceNormalizer final {
 public:
  // `charsmap`: the model's rules as its trainer wrote them (the size of a
  // double-array trie, the trie, the replacements), "" for none; checked here.
  // `kept`: words that no rule touches; must outlive the normalizer.
  static absl::StatusOr<SpaceNormalizer> Make(std::string_view charsmap,
                                              NormalRules rules,
                                              const PrefixTrie& kept);

  // Appends to `out`, which is empty.
  void Normalize(std::string_view text, std::string& out) const;

 private:
  struct Piece {
    std::string_view text;  // what it becomes
    size_t length;          // of what it was
  };
  Piece First(std::string_view text) const;

  NormalRules rules_;
  const PrefixTrie* kept_ = nullptr;
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace penstock::functions
