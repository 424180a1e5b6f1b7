// One string into several, and several into one.
#include <emmintrin.h>

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/string_items.h"
#include "penstock/functions/string_utf8.h"

namespace penstock::functions {
namespace {

using Words = GrowingItems<StringRef>;

constexpr size_t kLane = 16;

// A bit for each of 16 bytes: whether it is white space.
uint32_t SpaceMask(const char* at) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i blank = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(' '));
  // '\t' to '\r', by an unsigned comparison: min(c - 9, 4) == c - 9.
  const __m128i shifted = _mm_sub_epi8(bytes, _mm_set1_epi8('\t'));
  const __m128i control =
      _mm_cmpeq_epi8(_mm_min_epu8(shifted, _mm_set1_epi8(4)), shifted);
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_or_si128(blank, control)));
}

// The words between white space. The places where space begins and ends are
// the bits of a mask that differ from the bit before.
void SplitSpace(std::string_view text, Words& words) {
  const char* const base = text.data();
  // Every second byte could begin a word; what is not needed is used by the
  // next text.
  StringRef* out = words.Reserve(text.size() / 2 + 1);
  const char* begin = nullptr;  // of the word at hand
  uint32_t before = 1;          // whether the byte before was space
  const auto take = [&](uint32_t mask, const char* at) {
    uint32_t edges = mask ^ ((mask << 1) | before);
    edges &= 0xFFFF;
    before = (mask >> (kLane - 1)) & 1;
    while (edges != 0) {
      const char* edge = at + std::countr_zero(edges);
      edges &= edges - 1;
      if (begin == nullptr) {
        begin = edge;
      } else {
        *out++ = {begin, static_cast<uint64_t>(edge - begin)};
        begin = nullptr;
      }
    }
  };
  size_t at = 0;
  for (; at + kLane <= text.size(); at += kLane) {
    take(SpaceMask(base + at), base + at);
  }
  if (at < text.size()) {
    char rest[kLane];
    std::memset(rest, ' ', kLane);
    std::memcpy(rest, base + at, text.size() - at);
    take(SpaceMask(rest), base + at);
  }
  if (begin != nullptr) {
    *out++ = {begin, static_cast<uint64_t>(base + text.size() - begin)};
  }
  words.FinishAt(out);
}

// At most `most` words, and then the rest from its first word on, be it empty.
void SplitSpaceSome(std::string_view text, int64_t most, Words& words) {
  const auto skip_space = [&] {
    while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  };
  skip_space();
  for (int64_t count = 0; !text.empty();) {
    const auto* end = std::find_if(text.begin(), text.end(), IsSpace);
    const size_t size = end - text.begin();
    words.push_back(Ref(text.substr(0, size)));
    text.remove_prefix(size);
    skip_space();
    if (++count == most) {
      words.push_back(Ref(text));
      return;
    }
  }
}

void SplitAt(std::string_view text, std::string_view separator, int64_t most,
             Words& words) {
  int64_t count = 0;
  while (count++ != most) {
    const void* found =
        text.empty() ? nullptr
        : separator.size() == 1
            ? std::memchr(text.data(), separator[0], text.size())
            : memmem(text.data(), text.size(), separator.data(),
                     separator.size());
    if (found == nullptr) break;
    const size_t size = static_cast<const char*>(found) - text.data();
    words.push_back(Ref(text.substr(0, size)));
    text.remove_prefix(size + separator.size());
  }
  words.push_back(Ref(text));
}

// How the items of a split are found in a string.
class Splitter final {
 public:
  static absl::StatusOr<Splitter> Make(const Attrs& attrs) {
    Splitter splitter;
    PENSTOCK_ASSIGN_OR_RETURN(splitter.most_, IntAttr(attrs, "maxsplit", -1));
    if (splitter.most_ == 0) splitter.most_ = -1;
    PENSTOCK_ASSIGN_OR_RETURN(splitter.separator_,
                              TextAttrOr(attrs, "sep", ""));
    return splitter;
  }
  void operator()(int64_t, StringRef item, Words& words) const {
    if (!separator_.empty()) {
      SplitAt(item.view(), separator_, most_, words);
    } else if (most_ > 0) {
      SplitSpaceSome(item.view(), most_, words);
    } else {
      SplitSpace(item.view(), words);
    }
  }

 private:
  std::string_view separator_;
  int64_t most_ = -1;
};

struct Bytes {
  static absl::StatusOr<Bytes> Make(const Attrs&) { return Bytes{}; }
  void operator()(int64_t, StringRef item, Words& words) const {
    StringRef* out = words.Reserve(item.size);
    for (size_t i = 0; i < item.size; ++i) *out++ = {item.data + i, 1};
    words.FinishAt(out);
  }
};

struct Characters {
  static absl::StatusOr<Characters> Make(const Attrs&) { return Characters{}; }
  void operator()(int64_t, StringRef item, Words& words) const {
    // Ill-formed bytes are what unicode_decode would make of them.
    static constexpr std::string_view kUnknown = "\xEF\xBF\xBD";
    const std::string_view text = item.view();
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      const int32_t code = NextCodePoint(text, at);
      words.push_back(
          Ref(code < 0 ? kUnknown : text.substr(begin, at - begin)));
    }
  }
};

template <typename Op>
absl::StatusOr<TensorSpec> InferSplit(absl::Span<const ArgSpec> args,
                                      const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("a split", args[0]));
  PENSTOCK_RETURN_IF_ERROR(CheckRank("a split", args[0], 0));
  PENSTOCK_RETURN_IF_ERROR(Op::Make(attrs).status());
  return TensorSpec{DType::kString,
                    PartialShape(PartialShape::Dims{std::nullopt})};
}

template <typename Op>
absl::StatusOr<Column> EvalSplit(absl::Span<const Arg> args, const Attrs& attrs,
                                 const TensorSpec&, EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const Op op, Op::Make(attrs));
  return SplitScalars<StringRef>(args[0], ResultRows(args, context),
                                 StringPins(args), context, op);
}

template <typename Op>
absl::StatusOr<std::vector<TensorSpec>> InferRagged(
    absl::Span<const ArgSpec> args, const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("a split", args[0]));
  PENSTOCK_RETURN_IF_ERROR(CheckRank("a split", args[0], 1));
  PENSTOCK_RETURN_IF_ERROR(Op::Make(attrs).status());
  return RaggedSpecs(DType::kString, args[0]);
}

template <typename Op>
absl::StatusOr<std::vector<Column>> EvalRagged(absl::Span<const Arg> args,
                                               const Attrs& attrs,
                                               absl::Span<const TensorSpec>,
                                               EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const Op op, Op::Make(attrs));
  return SplitVectors<StringRef>(args[0], ResultRows(args, context),
                                 StringPins(args), context, op);
}

// Two forms of one function: of a string, and of a vector of them.
template <typename Op>
void AddSplit(std::string_view name, std::string_view ragged_name,
              std::vector<Param> params, std::string_view doc,
              std::vector<Function>& to) {
  to.push_back({.name = name,
                .params = params,
                .doc = doc,
                .example = "",
                .infer = InferSplit<Op>,
                .eval = EvalSplit<Op>,
                .is_internal = true});
  to.push_back({.name = ragged_name,
                .params = std::move(params),
                .doc = doc,
                .example = "",
                .infer = nullptr,
                .eval = nullptr,
                .infer_parts = InferRagged<Op>,
                .eval_parts = EvalRagged<Op>,
                .is_internal = true});
}

}  // namespace

std::vector<Function> StringSplitFunctions() {
  std::vector<Function> all;
  const Param input = {"input", ParamKind::kTensor, "", "Strings."};
  AddSplit<Splitter>(
      "strings.split", "strings.split_ragged",
      {input,
       {"sep", ParamKind::kText, "None", "What is between; None: space."},
       {"maxsplit", ParamKind::kInt, "-1", "The most splits, if positive."}},
      "The parts of a string.", all);
  AddSplit<Bytes>("strings.bytes_split", "strings.bytes_split_ragged", {input},
                  "The bytes of a string.", all);
  AddSplit<Characters>("strings.unicode_split", "strings.unicode_split_ragged",
                       {input}, "The characters of a string.", all);
  return all;
}

}  // namespace penstock::functions
