// Prefixes of a text that are in a set of strings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace penstock::functions {

// Immutable once built. A node's children are one run of the array of nodes,
// and the bytes that lead to them one run of the array of labels.
class PrefixTrie final {
 public:
  static constexpr int32_t kNone = -1;

  struct Word {
    std::string_view text;  // not empty
    int32_t number;         // not negative
  };
  // Of equal words, any counts.
  void Build(std::vector<Word> words);

  // found(number, length) for every word that `text` begins with, the shortest
  // first.
  template <typename Found>
  void FindPrefixes(std::string_view text, Found&& found) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const Node& at = nodes_[node];
      if (at.count == 0) return;
      const void* label = std::memchr(&labels_[at.begin], text[i], at.count);
      if (label == nullptr) return;
      node = static_cast<uint32_t>(static_cast<const char*>(label) -
                                   labels_.data());
      if (nodes_[node].number != kNone) found(nodes_[node].number, i + 1);
    }
  }

 private:
  struct Node {
    uint32_t begin = 0;  // of the children
    uint32_t count = 0;
    int32_t number = kNone;
  };
  // nodes_[i] is reached by labels_[i]; the root by none.
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::vector<char> labels_ = std::vector<char>(1);
};

inline void PrefixTrie::Build(std::vector<Word> words) {
  std::sort(words.begin(), words.end(),
            [](const Word& a, const Word& b) { return a.text < b.text; });
  struct Range {
    uint32_t node;
    size_t begin;
    size_t end;
    size_t depth;
  };
  // Level by level, so that the children of a node lie together.
  std::vector<Range> ranges = {{0, 0, words.size(), 0}};
  for (size_t next = 0; next < ranges.size(); ++next) {
    auto [node, begin, end, depth] = ranges[next];
    while (begin < end && words[begin].text.size() == depth) {
      nodes_[node].number = words[begin++].number;
    }
    nodes_[node].begin = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const char label = words[begin].text[depth];
      size_t last = begin;
      while (last < end && words[last].text[depth] == label) ++last;
      ranges.push_back(
          {static_cast<uint32_t>(nodes_.size()), begin, last, depth + 1});
      nodes_.emplace_back();
      labels_.push_back(label);
      begin = last;
    }
    nodes_[node].count =
        static_cast<uint32_t>(nodes_.size()) - nodes_[node].begin;
  }
}

}  // namespace penstock::functions
