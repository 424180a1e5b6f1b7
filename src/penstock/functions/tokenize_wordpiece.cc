// WordPiece behind BERT's basic tokenizer.
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/lookup_table.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/string_items.h"
#include "penstock/functions/string_utf8.h"
#include "penstock/functions/tokenize_encode.h"
#include "penstock/functions/tokenize_words.h"

namespace penstock::functions {
namespace {

// ---- Characters.

bool IsBlank(int32_t code) {
  return code == '\t' || code == '\n' || code == '\r' || u_isUWhiteSpace(code);
}

// What is left out: it shows nothing.
bool IsDropped(int32_t code) {
  if (code == 0 || code == kReplacement) return true;
  if (code == '\t' || code == '\n' || code == '\r') return false;
  return (U_MASK(u_charType(code)) &
          (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK | U_GC_CS_MASK)) != 0;
}

bool IsPunctuation(int32_t code) {
  if (code < 0x80) {
    return (code >= 33 && code <= 47) || (code >= 58 && code <= 64) ||
           (code >= 91 && code <= 96) || (code >= 123 && code <= 126);
  }
  return (U_MASK(u_charType(code)) & U_GC_P_MASK) != 0;
}

// The ideographs that BERT takes one by one.
bool IsIdeograph(int32_t code) {
  return (code >= 0x4E00 && code <= 0x9FFF) ||
         (code >= 0x3400 && code <= 0x4DBF) ||
         (code >= 0x20000 && code <= 0x2A6DF) ||
         (code >= 0x2A700 && code <= 0x2B73F) ||
         (code >= 0x2B740 && code <= 0x2B81F) ||
         (code >= 0x2B920 && code <= 0x2CEAF) ||
         (code >= 0xF900 && code <= 0xFAFF) ||
         (code >= 0x2F800 && code <= 0x2FA1F);
}

// ---- Pieces.

class Pieces final : public Prepared {
 public:
  static absl::StatusOr<std::shared_ptr<const Pieces>> Make(const Column& words,
                                                            const Attrs& attrs);

  void Encode(std::string_view text, Numbers& to) const;

 private:
  // Adds what becomes of a character to the word at hand.
  void AddCharacter(int32_t code, std::string& word, Numbers& to) const;
  void AddPlain(int32_t code, std::string& word, Numbers& to) const;
  void FinishWord(std::string& word, Numbers& to) const;

  Column words_;
  LookupTable<StringRef> first_;
  std::vector<StringRef> rest_keys_;
  std::vector<int32_t> rest_numbers_;
  LookupTable<StringRef> rest_;
  bool lowers_ = true;
  bool strips_accents_ = true;
  bool parts_ideographs_ = true;
  int32_t unknown_ = 0;
  int64_t max_characters_ = 100;
  const icu::Normalizer2* forms_ = nullptr;
  // Only remembers; what Encode() gives does not depend on it.
  mutable WordCache cache_;
};

absl::StatusOr<std::shared_ptr<const Pieces>> Pieces::Make(const Column& words,
                                                           const Attrs& attrs) {
  auto made = std::make_shared<Pieces>();
  made->words_ = words;
  const auto all = absl::MakeConstSpan(made->words_.Row<StringRef>(0),
                                       made->words_.RowItems(0));
  PENSTOCK_RETURN_IF_ERROR(made->first_.Fill(all));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view prefix,
                            TextAttrOr(attrs, "prefix", "##"));
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string_view word = all[i].view();
    if (word.size() <= prefix.size() ||
        word.substr(0, prefix.size()) != prefix) {
      continue;
    }
    made->rest_keys_.push_back(Ref(word.substr(prefix.size())));
    made->rest_numbers_.push_back(static_cast<int32_t>(i));
  }
  PENSTOCK_RETURN_IF_ERROR(made->rest_.Fill(made->rest_keys_));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view unknown,
                            TextAttrOr(attrs, "unknown", "[UNK]"));
  const uint32_t place = made->first_.Find(Ref(unknown));
  if (place == made->first_.kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat("a vocabulary must have the token for unknown words, ",
                     Quoted(unknown), "; it has ", all.size(), " others"));
  }
  made->unknown_ = static_cast<int32_t>(place);
  PENSTOCK_ASSIGN_OR_RETURN(made->lowers_, BoolAttr(attrs, "lowercase", true));
  PENSTOCK_ASSIGN_OR_RETURN(made->strips_accents_,
                            BoolAttr(attrs, "strip_accents", made->lowers_));
  PENSTOCK_ASSIGN_OR_RETURN(made->parts_ideographs_,
                            BoolAttr(attrs, "handle_chinese_chars", true));
  PENSTOCK_ASSIGN_OR_RETURN(made->max_characters_,
                            IntAttr(attrs, "max_characters", 100));
  // Pieces are sought from every character to every other.
  constexpr int64_t kMostCharacters = 1000;
  if (made->max_characters_ < 1 || made->max_characters_ > kMostCharacters) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_characters must be 1 to ", kMostCharacters, "; got ",
                     made->max_characters_));
  }
  UErrorCode error = U_ZERO_ERROR;
  made->forms_ = icu::Normalizer2::getNFCInstance(error);
  if (U_FAILURE(error)) {
    return absl::InternalError(
        absl::StrCat("ICU has no normal forms: ", u_errorName(error)));
  }
  return made;
}

void Pieces::Encode(std::string_view text, Numbers& to) const {
  std::string word;
  for (size_t at = 0; at < text.size();) {
    const int32_t code = NextCodePoint(text, at);
    if (code > ' ' && code < 0x7F) {
      AddPlain(code, word, to);
      continue;
    }
    if (code < 0 || IsDropped(code)) continue;
    if (IsBlank(code)) {
      FinishWord(word, to);
    } else if (parts_ideographs_ && IsIdeograph(code)) {
      FinishWord(word, to);
      AddCharacter(code, word, to);
      FinishWord(word, to);
    } else {
      AddCharacter(code, word, to);
    }
  }
  FinishWord(word, to);
}

void Pieces::AddCharacter(int32_t code, std::string& word, Numbers& to) const {
  icu::UnicodeString parts;
  if (!strips_accents_ || code < 0x80) return AddPlain(code, word, to);
  if (!forms_->getDecomposition(code, parts)) parts.append(code);
  for (int32_t i = 0; i < parts.length(); i = parts.moveIndex32(i, 1)) {
    const int32_t part = parts.char32At(i);
    if (u_charType(part) != U_NON_SPACING_MARK) AddPlain(part, word, to);
  }
}

void Pieces::AddPlain(int32_t code, std::string& word, Numbers& to) const {
  if (lowers_) {
    if (code == 0x130) {  // the only one whose lower case is two characters
      AppendCodePoint('i', word);
      code = 0x307;
    } else {
      code = code < 0x80 ? (code >= 'A' && code <= 'Z' ? code | 0x20 : code)
                         : u_tolower(code);
    }
  }
  if (IsPunctuation(code)) {
    FinishWord(word, to);
    AppendCodePoint(code, word);
    FinishWord(word, to);
  } else {
    AppendCodePoint(code, word);
  }
}

// The longest pieces from the left; unknown if that comes to no end.
void Pieces::FinishWord(std::string& word, Numbers& to) const {
  if (word.empty()) return;
  const absl::Span<const int32_t> known = cache_.Find(word);
  if (!known.empty()) {
    int32_t* out = to.Reserve(known.size());
    to.FinishAt(std::copy(known.begin(), known.end(), out));
    word.clear();
    return;
  }
  const size_t size_before = to.size();
  const std::string_view text = word;
  bool is_unknown =
      text.size() - std::count_if(text.begin(), text.end(), IsTrail) >
      static_cast<uint64_t>(max_characters_);
  for (size_t begin = 0; begin < text.size() && !is_unknown;) {
    size_t end = text.size();
    for (; end > begin; --end) {
      if (end < text.size() && IsTrail(text[end])) continue;
      const StringRef part = Ref(text.substr(begin, end - begin));
      const uint32_t place = begin == 0 ? first_.Find(part) : rest_.Find(part);
      if (place == first_.kNone) continue;
      to.push_back(begin == 0 ? static_cast<int32_t>(place)
                              : rest_numbers_[place]);
      break;
    }
    is_unknown = end == begin;
    begin = end;
  }
  if (is_unknown) {
    to.resize(size_before);
    to.push_back(unknown_);
  }
  cache_.Add(text, absl::MakeConstSpan(to.data() + size_before,
                                       to.size() - size_before));
  word.clear();
}

// ---- The functions.

absl::Status Check(absl::Span<const ArgSpec> args, int rank) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("text.wordpiece", args[0]));
  PENSTOCK_RETURN_IF_ERROR(CheckRank("text.wordpiece", args[0], rank));
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("text.wordpiece", args[1]));
  return CheckRank("text.wordpiece's vocabulary", args[1], 1);
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
  if (args[1].constant == nullptr) {
    return absl::InvalidArgumentError(
        "a tokenizer's vocabulary must be a constant");
  }
  PENSTOCK_ASSIGN_OR_RETURN(PreparedPtr pieces,
                            Pieces::Make(*args[1].constant, attrs));
  return pieces;
}

}  // namespace

std::vector<Function> WordPieceFunctions() {
  const std::vector<Param> params = {
      {"text", ParamKind::kTensor, "", "Strings."},
      {"vocabulary", ParamKind::kTensor, "", "The pieces by their numbers."},
      {"lowercase", ParamKind::kBool, "True", "Whether case is dropped."},
      {"strip_accents", ParamKind::kBool, "None", "As lowercase, if None."},
      {"handle_chinese_chars", ParamKind::kBool, "True",
       "Whether ideographs are words of their own."},
      {"unknown", ParamKind::kText, "\"[UNK]\"", "For other words."},
      {"prefix", ParamKind::kText, "\"##\"", "Of pieces within a word."},
      {"max_characters", ParamKind::kInt, "100", "Of a word."}};
  return TokenizerFunctions<Pieces>("text.wordpiece", "text.wordpiece_ragged",
                                    params, Infer, InferRagged, Prepare);
}

}  // namespace penstock::functions
