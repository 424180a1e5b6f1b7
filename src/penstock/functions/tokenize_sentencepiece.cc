// SentencePiece's models: unigram, byte-pair encoding, words and characters.
#include <algorithm>
#include <cfloat>
#include <cstdio>
#include <queue>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/lookup_table.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/string_items.h"
#include "penstock/functions/string_utf8.h"
#include "penstock/functions/tokenize_encode.h"
#include "penstock/functions/tokenize_normalize.h"
#include "penstock/functions/tokenize_trie.h"

namespace penstock::functions {
namespace {

// As the model's file numbers them.
enum PieceType {
  kNormal = 1,
  kUnknown = 2,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

// Bytes of the character that begins with `lead`, which may be cut short.
size_t CharacterBytes(char lead) {
  return "\1\1\1\1\1\1\1\1\1\1\1\1\2\2\3\4"[static_cast<uint8_t>(lead) >> 4];
}

enum class Kind { kUnigram, kBpe, kWord, kChar };

absl::StatusOr<Kind> KindAttr(const Attrs& attrs) {
  if (!attrs.contains("kind")) return Kind::kUnigram;
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view kind,
                            TextAttr(attrs, "kind"));
  if (kind == "unigram") return Kind::kUnigram;
  if (kind == "bpe") return Kind::kBpe;
  if (kind == "word") return Kind::kWord;
  if (kind == "char") return Kind::kChar;
  return absl::InvalidArgumentError(absl::StrCat(
      "kind must be \"unigram\", \"bpe\", \"word\" or \"char\"; got \"",
      Text(kind), "\""));
}

struct Piece {
  size_t begin;
  size_t size;
  int32_t number;
};

class Model final : public Prepared {
 public:
  static absl::StatusOr<std::shared_ptr<const Model>> Make(
      absl::Span<const ArgSpec> args, const Attrs& attrs);

  void Encode(std::string_view text, Numbers& to) const;

 private:
  absl::Status AddPieces(const Column& types);
  void Unigram(std::string_view text, std::vector<Piece>& pieces) const;
  void Merge(std::string_view text, std::vector<Piece>& pieces) const;
  void Words(std::string_view text, std::vector<Piece>& pieces) const;
  void Characters(std::string_view text, std::vector<Piece>& pieces) const;

  // Bytes of the user-defined piece that `text` begins with, if any.
  size_t UserDefinedBytes(std::string_view text) const;
  // Of the piece that is this text, or the unknown one's.
  int32_t NumberOf(std::string_view text) const;
  int32_t TypeOf(int32_t number) const { return types_[number]; }

  Column pieces_;
  Column scores_column_;
  const float* scores_ = nullptr;
  std::vector<int32_t> types_;
  // Of the pieces that texts may be made of. Words and characters are looked up
  // by name alone, so that a word "<s>" is the piece of that name, as in the
  // reference.
  std::vector<StringRef> keys_;
  std::vector<int32_t> key_numbers_;
  LookupTable<StringRef> table_;
  PrefixTrie trie_;
  PrefixTrie user_defined_;
  std::vector<SpaceNormalizer> normalizer_;  // one
  int32_t bytes_[256];
  bool falls_back_to_bytes_ = false;
  Kind kind_ = Kind::kUnigram;
  int32_t unknown_ = 0;
  float min_score_ = FLT_MAX;
  float max_score_ = FLT_MIN;  // as the reference has it: barely positive
};

absl::StatusOr<std::shared_ptr<const Model>> Model::Make(
    absl::Span<const ArgSpec> args, const Attrs& attrs) {
  for (size_t i = 1; i < args.size(); ++i) {
    if (args[i].constant == nullptr) {
      return absl::InvalidArgumentError("a tokenizer's model must be constant");
    }
  }
  auto made = std::make_shared<Model>();
  made->pieces_ = *args[1].constant;
  made->scores_column_ = *args[2].constant;
  made->scores_ = made->scores_column_.Row<float>(0);
  const int64_t count = made->pieces_.RowItems(0);
  if (made->scores_column_.RowItems(0) != count ||
      args[3].constant->RowItems(0) != count) {
    return absl::InvalidArgumentError(
        "a model needs a score and a type for each piece");
  }
  PENSTOCK_ASSIGN_OR_RETURN(made->kind_, KindAttr(attrs));
  PENSTOCK_RETURN_IF_ERROR(made->AddPieces(*args[3].constant));
  PENSTOCK_ASSIGN_OR_RETURN(made->falls_back_to_bytes_,
                            BoolAttr(attrs, "byte_fallback", false));
  if (made->falls_back_to_bytes_ &&
      *std::min_element(made->bytes_, made->bytes_ + 256) < 0) {
    return absl::InvalidArgumentError(
        "a model that falls back to bytes must have a piece for each");
  }
  NormalRules rules;
  PENSTOCK_ASSIGN_OR_RETURN(rules.add_dummy_prefix,
                            BoolAttr(attrs, "add_dummy_prefix", true));
  PENSTOCK_ASSIGN_OR_RETURN(rules.remove_extra_whitespaces,
                            BoolAttr(attrs, "remove_extra_whitespaces", true));
  PENSTOCK_ASSIGN_OR_RETURN(rules.escape_whitespaces,
                            BoolAttr(attrs, "escape_whitespaces", true));
  PENSTOCK_ASSIGN_OR_RETURN(
      rules.treat_whitespace_as_suffix,
      BoolAttr(attrs, "treat_whitespace_as_suffix", false));
  PENSTOCK_ASSIGN_OR_RETURN(
      SpaceNormalizer normalizer,
      SpaceNormalizer::Make(args[4].constant->Row<StringRef>(0)->view(), rules,
                            made->user_defined_));
  made->normalizer_.push_back(std::move(normalizer));
  return made;
}

absl::Status Model::AddPieces(const Column& types) {
  const int64_t count = pieces_.RowItems(0);
  const StringRef* pieces = pieces_.Row<StringRef>(0);
  types_.assign(types.Row<int32_t>(0), types.Row<int32_t>(0) + count);
  std::vector<PrefixTrie::Word> words;
  std::vector<PrefixTrie::Word> user_defined;
  std::fill(bytes_, bytes_ + 256, -1);
  unknown_ = -1;
  for (int32_t i = 0; i < static_cast<int32_t>(count); ++i) {
    const std::string_view text = pieces[i].view();
    const int32_t type = TypeOf(i);
    if (type == kUnknown) unknown_ = i;
    if (type == kByte) {
      unsigned value = 0;
      const std::string name(text);
      if (std::sscanf(name.c_str(), "<0x%2X>", &value) == 1) bytes_[value] = i;
    }
    if (type == kNormal) {
      min_score_ = std::min(min_score_, scores_[i]);
      max_score_ = std::max(max_score_, scores_[i]);
    }
    const bool is_reserved =
        type != kNormal && type != kUserDefined && type != kUnused;
    const bool by_name = kind_ == Kind::kWord || kind_ == Kind::kChar;
    if (is_reserved && !by_name) continue;
    if (text.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("pieces of a model must not be empty; got one at ", i));
    }
    if (kind_ == Kind::kUnigram) words.push_back({text, i});
    if (type == kUserDefined) user_defined.push_back({text, i});
    keys_.push_back(pieces[i]);
    key_numbers_.push_back(i);
  }
  if (unknown_ < 0) {
    return absl::InvalidArgumentError(
        "a model must have a piece for what is unknown");
  }
  trie_.Build(std::move(words));
  user_defined_.Build(std::move(user_defined));
  return table_.Fill(keys_);
}

void Model::Encode(std::string_view text, Numbers& to) const {
  std::string normalized;
  normalizer_.front().Normalize(text, normalized);
  if (normalized.empty()) return;
  std::vector<Piece> pieces;
  switch (kind_) {
    case Kind::kUnigram:
      Unigram(normalized, pieces);
      break;
    case Kind::kBpe:
      Merge(normalized, pieces);
      break;
    case Kind::kWord:
      Words(normalized, pieces);
      break;
    case Kind::kChar:
      Characters(normalized, pieces);
      break;
  }
  bool is_after_unknown = false;
  for (const Piece& piece : pieces) {
    const bool is_unknown = piece.number == unknown_;
    if (is_unknown && falls_back_to_bytes_) {
      for (size_t i = 0; i < piece.size; ++i) {
        to.push_back(bytes_[static_cast<uint8_t>(normalized[piece.begin + i])]);
      }
    } else if (!(is_unknown && is_after_unknown)) {
      to.push_back(piece.number);  // a run of unknown ones is one
    }
    is_after_unknown = is_unknown;
  }
}

// The sequence of pieces with the highest sum of scores, by the best one up to
// each place. Sums are rounded as in the reference: equal scores must end in
// equal choices.
void Model::Unigram(std::string_view text, std::vector<Piece>& pieces) const {
  struct Best {
    float score = 0;
    int32_t number = -1;
    int64_t begin = -1;  // none ends here
  };
  constexpr float kUnknownPenalty = 10;
  const float unknown_score = min_score_ - kUnknownPenalty;
  std::vector<Best> best(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    const float so_far = best[at].score;
    const size_t step = std::min(CharacterBytes(text[at]), text.size() - at);
    bool has_single = false;
    const auto consider = [&](int32_t number, size_t length, double score) {
      const double sum = score + so_far;
      Best& target = best[at + length];
      if (target.begin < 0 || sum > target.score) {
        target = {static_cast<float>(sum), number, static_cast<int64_t>(at)};
      }
    };
    trie_.FindPrefixes(text.substr(at), [&](int32_t number, size_t length) {
      if (TypeOf(number) == kUnused) return;
      const double score =
          TypeOf(number) == kUserDefined
              ? static_cast<double>(static_cast<float>(length) * max_score_) -
                    0.1
              : static_cast<double>(scores_[number]);
      consider(number, length, score);
      has_single = has_single || length == step;
    });
    if (!has_single) {
      const float sum = unknown_score + so_far;
      Best& target = best[at + step];
      if (target.begin < 0 || sum > target.score) {
        target = {sum, unknown_, static_cast<int64_t>(at)};
      }
    }
    at += step;
  }
  for (size_t end = text.size(); end > 0;) {
    const Best& last = best[end];
    const size_t begin = static_cast<size_t>(last.begin);
    pieces.push_back({begin, end - begin, last.number});
    end = begin;
  }
  std::reverse(pieces.begin(), pieces.end());
}

// Characters, and again and again the pair of neighbours that makes the piece
// with the highest score.
void Model::Merge(std::string_view text, std::vector<Piece>& pieces) const {
  struct Symbol {
    int64_t before;
    int64_t after;  // -1: none
    size_t begin;
    size_t size;  // 0: merged into another
    bool is_frozen;
  };
  struct Candidate {
    float score;
    int64_t left;
    int64_t right;
    size_t size;
    bool operator<(const Candidate& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  std::vector<Symbol> symbols;
  for (size_t at = 0; at < text.size();) {
    size_t size = UserDefinedBytes(text.substr(at));
    const bool is_frozen = size > 0;
    if (!is_frozen) {
      size = std::min(CharacterBytes(text[at]), text.size() - at);
    }
    const int64_t i = static_cast<int64_t>(symbols.size());
    symbols.push_back({i - 1, i + 1, at, size, is_frozen});
    at += size;
  }
  symbols.back().after = -1;
  std::priority_queue<Candidate> queue;
  // Pieces that only lead to others, and the size of their left parts: where
  // one is left at the end, it is parted again.
  absl::flat_hash_map<std::string_view, size_t> unused;
  const auto place_of = [&](size_t begin, size_t size) {
    return table_.Find(Ref(text.substr(begin, size)));
  };
  const auto consider = [&](int64_t left, int64_t right) {
    if (left < 0 || right < 0 || symbols[left].is_frozen ||
        symbols[right].is_frozen) {
      return;
    }
    const size_t size = symbols[left].size + symbols[right].size;
    const uint32_t place = place_of(symbols[left].begin, size);
    if (place == table_.kNone) return;
    if (TypeOf(key_numbers_[place]) == kUnused) {
      unused[text.substr(symbols[left].begin, size)] = symbols[left].size;
    }
    queue.push({scores_[key_numbers_[place]], left, right, size});
  };
  for (size_t i = 1; i < symbols.size(); ++i) {
    consider(static_cast<int64_t>(i) - 1, static_cast<int64_t>(i));
  }
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = symbols[top.left];
    Symbol& right = symbols[top.right];
    if (left.size == 0 || right.size == 0 ||
        left.size + right.size != top.size) {
      continue;
    }
    left.size = top.size;
    left.after = right.after;
    if (right.after >= 0) symbols[right.after].before = top.left;
    right.size = 0;
    consider(left.before, top.left);
    consider(top.left, left.after);
  }
  std::vector<std::pair<size_t, size_t>> parts;  // begin, size; last first
  for (int64_t i = 0; i >= 0; i = symbols[i].after) {
    parts.emplace_back(symbols[i].begin, symbols[i].size);
    while (!parts.empty()) {
      const auto [begin, size] = parts.back();
      parts.pop_back();
      const uint32_t place = place_of(begin, size);
      const int32_t number =
          place == table_.kNone ? unknown_ : key_numbers_[place];
      const auto split = TypeOf(number) == kUnused
                             ? unused.find(text.substr(begin, size))
                             : unused.end();
      if (split == unused.end()) {
        pieces.push_back({begin, size, number});
      } else {
        parts.emplace_back(begin + split->second, size - split->second);
        parts.emplace_back(begin, split->second);
      }
    }
  }
}

// Every visible space begins a word, whatever side of words spaces are on: so
// does the reference.
void Model::Words(std::string_view text, std::vector<Piece>& pieces) const {
  constexpr std::string_view kSpace = "\xE2\x96\x81";
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(kSpace, begin + 1), text.size());
    pieces.push_back(
        {begin, end - begin, NumberOf(text.substr(begin, end - begin))});
    begin = end;
  }
}

void Model::Characters(std::string_view text,
                       std::vector<Piece>& pieces) const {
  for (size_t at = 0; at < text.size();) {
    size_t size = UserDefinedBytes(text.substr(at));
    if (size == 0) size = std::min(CharacterBytes(text[at]), text.size() - at);
    pieces.push_back({at, size, NumberOf(text.substr(at, size))});
    at += size;
  }
}

size_t Model::UserDefinedBytes(std::string_view text) const {
  size_t size = 0;  // prefixes come in the order of their lengths
  user_defined_.FindPrefixes(text,
                             [&](int32_t, size_t length) { size = length; });
  return size;
}

int32_t Model::NumberOf(std::string_view text) const {
  const uint32_t place = table_.Find(Ref(text));
  return place == table_.kNone ? unknown_ : key_numbers_[place];
}

// ---- The functions.

absl::Status Check(absl::Span<const ArgSpec> args, int rank) {
  constexpr std::string_view kName = "text.sentencepiece";
  PENSTOCK_RETURN_IF_ERROR(CheckStrings(kName, args[0]));
  PENSTOCK_RETURN_IF_ERROR(CheckRank(kName, args[0], rank));
  PENSTOCK_RETURN_IF_ERROR(CheckStrings(kName, args[1]));
  PENSTOCK_RETURN_IF_ERROR(CheckStrings(kName, args[4]));
  for (int i = 1; i <= 3; ++i) {
    PENSTOCK_RETURN_IF_ERROR(CheckRank(kName, args[i], 1));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckRank(kName, args[4], 0));
  if (args[2].spec.dtype == DType::kFloat32 &&
      args[3].spec.dtype == DType::kInt32) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "text.sentencepiece needs scores of float32 and types of int32; got ",
      args[2].spec.ToString(), " and ", args[3].spec.ToString()));
}

absl::StatusOr<TensorSpec> Infer(absl::Span<const ArgSpec> args, const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(Check(args, 0));
  return TensorSpec{DType::kInt32,
                    PartialShape(PartialShape::Dims{std::nullopt})};
}

absl::StatusOr<std::vector<TensorSpec>> InferRagged(
    absl::Span<const ArgSpec> args, const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(Check(args, 1));
  return RaggedSpecs(DType::kInt32, args[0]);
}

absl::StatusOr<PreparedPtr> Prepare(absl::Span<const ArgSpec> args,
                                    const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(PreparedPtr model, Model::Make(args, attrs));
  return model;
}

}  // namespace

std::vector<Function> SentencePieceFunctions() {
  const std::vector<Param> params = {
      {"text", ParamKind::kTensor, "", "Strings."},
      {"pieces", ParamKind::kTensor, "", "By number."},
      {"scores", ParamKind::kTensor, "", "One for each piece."},
      {"types", ParamKind::kTensor, "", "One for each piece."},
      {"charsmap", ParamKind::kTensor, "", "The rules for characters."},
      {"kind", ParamKind::kText, "\"unigram\"",
       "Or \"bpe\", \"word\", \"char\"."},
      {"byte_fallback", ParamKind::kBool, "False", "For unknown characters."},
      {"add_dummy_prefix", ParamKind::kBool, "True", "A space in front."},
      {"remove_extra_whitespaces", ParamKind::kBool, "True", "As it says."},
      {"escape_whitespaces", ParamKind::kBool, "True", "Spaces made visible."},
      {"treat_whitespace_as_suffix", ParamKind::kBool, "False",
       "Spaces end words."}};
  return TokenizerFunctions<Model>("text.sentencepiece",
                                   "text.sentencepiece_ragged", params, Infer,
                                   InferRagged, Prepare);
}

}  // namespace penstock::functions
