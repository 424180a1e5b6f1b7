// Byte-level byte-pair encoding, as GPT-2's.
#include <unicode/uchar.h>

#include <algorithm>
#include <queue>

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

// ---- Words: what no merge goes across. GPT-2 finds them by
// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+

enum class Class : uint8_t { kLetter, kNumber, kSpace, kOther };

Class ClassOf(int32_t code) {
  if (code < 0) return Class::kOther;
  const uint32_t category = U_MASK(u_charType(code));
  if ((category & U_GC_L_MASK) != 0) return Class::kLetter;
  if ((category & U_GC_N_MASK) != 0) return Class::kNumber;
  return u_isUWhiteSpace(code) ? Class::kSpace : Class::kOther;
}

// The class at text[at], which is moved behind the character.
Class NextClass(std::string_view text, size_t& at) {
  const auto byte = static_cast<uint8_t>(text[at]);
  if (byte >= 0x80) return ClassOf(NextCodePoint(text, at));
  ++at;
  if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') return Class::kLetter;
  if (byte >= '0' && byte <= '9') return Class::kNumber;
  return IsSpace(static_cast<char>(byte)) ? Class::kSpace : Class::kOther;
}

// The end of the characters of class `wanted` from `at` on.
size_t EndOfRun(std::string_view text, size_t at, Class wanted) {
  while (at < text.size()) {
    size_t next = at;
    if (NextClass(text, next) != wanted) break;
    at = next;
  }
  return at;
}

size_t EndOfContraction(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at + 1);
  for (std::string_view end : {"s", "t", "re", "ve", "m", "ll", "d"}) {
    if (rest.substr(0, end.size()) == end) return at + 1 + end.size();
  }
  return at;
}

// The end of the word that begins at `at`. REQUIRES: at < text.size().
size_t EndOfWord(std::string_view text, size_t at) {
  if (text[at] == '\'') {
    const size_t end = EndOfContraction(text, at);
    if (end > at) return end;
  }
  size_t next = at;
  Class kind = NextClass(text, next);
  if (text[at] == ' ' && next < text.size()) {
    size_t after = next;
    kind = NextClass(text, after);
    if (kind != Class::kSpace) return EndOfRun(text, after, kind);
  }
  if (kind != Class::kSpace) return EndOfRun(text, next, kind);
  // Space up to the last character of it, which is the next word's if that
  // begins behind it.
  size_t last = at;
  size_t end = at;
  while (end < text.size()) {
    size_t behind = end;
    if (NextClass(text, behind) != Class::kSpace) break;
    last = end;
    end = behind;
  }
  return end == text.size() || last == at ? end : last;
}

// ---- Merges.

class Merges final : public Prepared {
 public:
  static absl::StatusOr<std::shared_ptr<const Merges>> Make(
      const Column& bytes, const Column& merges);

  void Encode(std::string_view text, Numbers& to) const {
    for (size_t at = 0; at < text.size();) {
      const size_t end = EndOfWord(text, at);
      EncodeWord(text.substr(at, end - at), to);
      at = end;
    }
  }

 private:
  static constexpr uint32_t kNone = LookupTable<int64_t>::kNone;

  static int64_t Pair(int32_t a, int32_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) << 32 |
                                static_cast<uint32_t>(b));
  }
  uint32_t RankOf(int32_t a, int32_t b) const {
    return ranks_.Find(Pair(a, b));
  }

  void EncodeWord(std::string_view word, Numbers& to) const;
  int32_t* MergeShort(int32_t* begin, int32_t* end) const;
  int32_t* MergeLong(int32_t* begin, int32_t* end) const;

  int32_t bytes_[256];  // negative: has no number, and is left out
  std::vector<int64_t> pairs_;
  std::vector<int32_t> results_;  // by rank
  LookupTable<int64_t> ranks_;
  // Only remembers; what Encode() gives does not depend on it.
  mutable WordCache cache_;
};

absl::StatusOr<std::shared_ptr<const Merges>> Merges::Make(
    const Column& bytes, const Column& merges) {
  auto made = std::make_shared<Merges>();
  const int32_t* numbers = bytes.Row<int32_t>(0);
  std::copy_n(numbers, 256, made->bytes_);
  const auto shape = merges.RowShape(0);
  const int32_t* row = merges.Row<int32_t>(0);
  for (int64_t i = 0; i < shape[0]; ++i, row += 3) {
    made->pairs_.push_back(Pair(row[0], row[1]));
    made->results_.push_back(row[2]);
  }
  PENSTOCK_RETURN_IF_ERROR(made->ranks_.Fill(made->pairs_));
  return made;
}

void Merges::EncodeWord(std::string_view word, Numbers& to) const {
  const absl::Span<const int32_t> known = cache_.Find(word);
  if (!known.empty()) {
    int32_t* out = to.Reserve(known.size());
    to.FinishAt(std::copy(known.begin(), known.end(), out));
    return;
  }
  int32_t* const begin = to.Reserve(word.size());
  int32_t* end = begin;
  for (char c : word) {
    const int32_t number = bytes_[static_cast<uint8_t>(c)];
    if (number >= 0) *end++ = number;
  }
  constexpr int64_t kShort = 64;
  end = end - begin <= kShort ? MergeShort(begin, end) : MergeLong(begin, end);
  to.FinishAt(end);
  cache_.Add(word, absl::MakeConstSpan(begin, end - begin));
}

// Again and again the pair of the lowest rank, the leftmost of equals.
int32_t* Merges::MergeShort(int32_t* begin, int32_t* end) const {
  while (end - begin > 1) {
    uint32_t lowest = kNone;
    int32_t* at = nullptr;
    for (int32_t* i = begin; i + 1 < end; ++i) {
      const uint32_t rank = RankOf(i[0], i[1]);
      if (rank < lowest) {
        lowest = rank;
        at = i;
      }
    }
    if (at == nullptr) break;
    *at = results_[lowest];
    std::copy(at + 2, end, at + 1);
    --end;
  }
  return end;
}

// The same for words so long that looking at every pair again would not end:
// a queue of pairs, and links over what was merged.
int32_t* Merges::MergeLong(int32_t* begin, int32_t* end) const {
  const int64_t count = end - begin;
  struct Candidate {
    uint32_t rank;
    int64_t at;
    int64_t next;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  constexpr int32_t kGone = -1;
  std::vector<int64_t> after(count);
  std::vector<int64_t> before(count);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](int64_t at) {
    if (at < 0 || after[at] == count) return;
    const uint32_t rank = RankOf(begin[at], begin[after[at]]);
    if (rank != kNone) queue.push({rank, at, after[at]});
  };
  for (int64_t i = 0; i < count; ++i) {
    after[i] = i + 1;
    before[i] = i - 1;
  }
  for (int64_t i = 0; i + 1 < count; ++i) consider(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    // What was merged since is another pair, or none.
    if (begin[best.at] == kGone || after[best.at] != best.next ||
        RankOf(begin[best.at], begin[best.next]) != best.rank) {
      continue;
    }
    begin[best.at] = results_[best.rank];
    begin[best.next] = kGone;
    after[best.at] = after[best.next];
    if (after[best.at] < count) before[after[best.at]] = best.at;
    consider(before[best.at]);
    consider(best.at);
  }
  return std::remove(begin, end, kGone);
}

// ---- The functions.

absl::Status Check(absl::Span<const ArgSpec> args, int rank) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("text.bpe", args[0]));
  PENSTOCK_RETURN_IF_ERROR(CheckRank("text.bpe", args[0], rank));
  PENSTOCK_RETURN_IF_ERROR(CheckRank("text.bpe's bytes", args[1], 1));
  PENSTOCK_RETURN_IF_ERROR(CheckRank("text.bpe's merges", args[2], 2));
  const bool is_right = args[1].spec.dtype == DType::kInt32 &&
                        args[2].spec.dtype == DType::kInt32 &&
                        args[1].spec.shape.Accepts(std::vector<int64_t>{256}) &&
                        args[2].spec.shape.is_fully_known() &&
                        args[2].spec.shape.ToShape()[1] == 3;
  if (is_right) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("text.bpe needs int32(256,) and int32(n, 3); got ",
                   args[1].spec.ToString(), " and ", args[2].spec.ToString()));
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
                                    const Attrs&) {
  if (args[1].constant == nullptr || args[2].constant == nullptr) {
    return absl::InvalidArgumentError("a tokenizer's tables must be constants");
  }
  PENSTOCK_ASSIGN_OR_RETURN(PreparedPtr merges,
                            Merges::Make(*args[1].constant, *args[2].constant));
  return merges;
}

}  // namespace

std::vector<Function> BpeFunctions() {
  const std::vector<Param> params = {
      {"text", ParamKind::kTensor, "", "Strings."},
      {"bytes", ParamKind::kTensor, "", "The number of each byte."},
      {"merges", ParamKind::kTensor, "", "Rows of two numbers and their own."}};
  return TokenizerFunctions<Merges>("text.bpe", "text.bpe_ragged", params,
                                    Infer, InferRagged, Prepare);
}

}  // namespace penstock::functions
