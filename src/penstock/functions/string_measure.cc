// Lengths, parts by position, and code points.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/elementwise.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/string_items.h"
#include "penstock/functions/string_utf8.h"

namespace penstock::functions {
namespace {

enum class Unit { kByte, kCharacter };

absl::StatusOr<Unit> UnitAttr(const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view name,
                            TextAttrOr(attrs, "unit", "BYTE"));
  if (name == "BYTE") return Unit::kByte;
  if (name == "UTF8_CHAR") return Unit::kCharacter;
  return absl::InvalidArgumentError(
      absl::StrCat("unit must be BYTE or UTF8_CHAR; got ", Quoted(name)));
}

absl::StatusOr<TensorSpec> InferLength(absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("strings.length", args[0]));
  PENSTOCK_RETURN_IF_ERROR(UnitAttr(attrs).status());
  return TensorSpec{DType::kInt32, args[0].spec.shape};
}

absl::StatusOr<Column> EvalLength(absl::Span<const Arg> args,
                                  const Attrs& attrs, const TensorSpec&,
                                  EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const Unit unit, UnitAttr(attrs));
  return MapItems<StringRef, int32_t>(
      args[0], ResultRows(args, context), {}, [&](int64_t, StringRef item) {
        int64_t count = static_cast<int64_t>(item.size);
        if (unit == Unit::kCharacter) {
          const std::string_view text = item.view();
          count -= std::count_if(text.begin(), text.end(), IsTrail);
        }
        return static_cast<int32_t>(
            std::min<int64_t>(count, std::numeric_limits<int32_t>::max()));
      });
}

// Moves `at` over `count` characters; false if there are fewer.
bool Forward(std::string_view text, int64_t count, size_t& at) {
  for (; count > 0 && at < text.size(); --count) {
    do {
      ++at;
    } while (at < text.size() && IsTrail(text[at]));
  }
  return count <= 0;
}

bool Back(std::string_view text, int64_t count, size_t& at) {
  for (; count > 0 && at > 0; --count) {
    do {
      --at;
    } while (at > 0 && IsTrail(text[at]));
  }
  return count <= 0;
}

absl::Status OutOfRange(int64_t position, std::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "pos must be within the string; got ", position, " for ", Quoted(text)));
}

// The part of `text` from `position` on. A negative position counts from the
// end; a length is cut at the end.
absl::StatusOr<StringRef> Part(std::string_view text, int64_t position,
                               int64_t length, Unit unit) {
  if (length < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("len must not be negative; got ", length));
  }
  const int64_t size = static_cast<int64_t>(text.size());
  // Nothing has more characters than bytes.
  if (position > size || position < -size) return OutOfRange(position, text);
  length = std::min(length, size);
  if (unit == Unit::kByte) {
    if (position < 0) position += size;
    return Ref(text.substr(position, length));
  }
  size_t begin = position < 0 ? text.size() : 0;
  const bool is_within = position < 0 ? Back(text, -position, begin)
                                      : Forward(text, position, begin);
  if (!is_within) return OutOfRange(position, text);
  size_t end = begin;
  Forward(text, length, end);
  return Ref(text.substr(begin, end - begin));
}

absl::StatusOr<TensorSpec> InferSubstr(absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("strings.substr", args[0]));
  PENSTOCK_RETURN_IF_ERROR(UnitAttr(attrs).status());
  for (size_t k = 1; k < 3; ++k) {
    if (!IsInteger(args[k].spec.dtype)) {
      return absl::InvalidArgumentError(
          absl::StrCat("strings.substr needs integers for pos and len; got ",
                       args[k].spec.ToString()));
    }
  }
  TensorSpec result{DType::kString, {}};
  PENSTOCK_ASSIGN_OR_RETURN(result.shape, BroadcastShape(args));
  return result;
}

// The three arguments of a place, side by side.
template <int kWhich, typename T>
void TakeLoop(const std::byte* const* in, const int64_t* strides,
              std::byte* out, int64_t count) {
  T* to = reinterpret_cast<T*>(out);
  const std::byte* at = in[kWhich];
  for (int64_t i = 0; i < count; ++i, at += strides[kWhich]) {
    to[i] = *reinterpret_cast<const T*>(at);
  }
}

absl::StatusOr<Column> EvalSubstr(absl::Span<const Arg> args,
                                  const Attrs& attrs, const TensorSpec&,
                                  EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const Unit unit, UnitAttr(attrs));
  const DType dtypes[] = {DType::kString, DType::kInt64, DType::kInt64};
  PENSTOCK_ASSIGN_OR_RETURN(const Column text,
                            RunElementwise(args, dtypes, DType::kString,
                                           TakeLoop<0, StringRef>, context));
  PENSTOCK_ASSIGN_OR_RETURN(const Column position,
                            RunElementwise(args, dtypes, DType::kInt64,
                                           TakeLoop<1, int64_t>, context));
  PENSTOCK_ASSIGN_OR_RETURN(const Column length,
                            RunElementwise(args, dtypes, DType::kInt64,
                                           TakeLoop<2, int64_t>, context));
  RowReporter reporter(context);
  int64_t last_row = -1;
  int64_t i = 0;
  return MapItems<StringRef, StringRef>(
      {&text}, text.rows(), StringPins(args),
      [&](int64_t row, StringRef item) -> StringRef {
        i = row == last_row ? i + 1 : 0;
        last_row = row;
        absl::StatusOr<StringRef> part =
            Part(item.view(), position.Row<int64_t>(row)[i],
                 length.Row<int64_t>(row)[i], unit);
        if (part.ok()) return *part;
        reporter.Report(row, [&] { return part.status(); });
        return {};
      });
}

enum class OnError { kReplace, kIgnore, kStrict };

struct Decoding {
  OnError on_error = OnError::kReplace;
  int32_t replacement = kReplacement;

  static absl::StatusOr<Decoding> Make(const Attrs& attrs) {
    Decoding decoding;
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view encoding,
                              TextAttrOr(attrs, "input_encoding", "UTF-8"));
    if (encoding != "UTF-8") {
      return absl::InvalidArgumentError(
          absl::StrCat("input_encoding must be UTF-8; got ", Quoted(encoding)));
    }
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view errors,
                              TextAttrOr(attrs, "errors", "replace"));
    if (errors == "replace") {
      decoding.on_error = OnError::kReplace;
    } else if (errors == "ignore") {
      decoding.on_error = OnError::kIgnore;
    } else if (errors == "strict") {
      decoding.on_error = OnError::kStrict;
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "errors must be replace, ignore or strict; got ", Quoted(errors)));
    }
    PENSTOCK_ASSIGN_OR_RETURN(const int64_t replacement,
                              IntAttr(attrs, "replacement_char", kReplacement));
    if (replacement < 0 || replacement > kMaxCodePoint) {
      return absl::InvalidArgumentError(absl::StrCat(
          "replacement_char must be a code point; got ", replacement));
    }
    decoding.replacement = static_cast<int32_t>(replacement);
    return decoding;
  }
};

using CodePoints = GrowingItems<int32_t>;

void Decode(int64_t row, StringRef item, const Decoding& decoding,
            RowReporter& reporter, CodePoints& to) {
  const std::string_view text = item.view();
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    int32_t code = NextCodePoint(text, at);
    if (code < 0) {
      if (decoding.on_error == OnError::kIgnore) continue;
      if (decoding.on_error == OnError::kStrict) {
        reporter.Report(row, [&] {
          return absl::InvalidArgumentError(absl::StrCat(
              "strings.unicode_decode needs well-formed UTF-8; "
              "got ",
              Quoted(text), " with an ill-formed byte at ", begin));
        });
        return;
      }
      code = decoding.replacement;
    }
    to.push_back(code);
  }
}

absl::StatusOr<TensorSpec> InferDecode(absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("strings.unicode_decode", args[0]));
  PENSTOCK_RETURN_IF_ERROR(CheckRank("strings.unicode_decode", args[0], 0));
  PENSTOCK_RETURN_IF_ERROR(Decoding::Make(attrs).status());
  return TensorSpec{DType::kInt32,
                    PartialShape(PartialShape::Dims{std::nullopt})};
}

absl::StatusOr<Column> EvalDecode(absl::Span<const Arg> args,
                                  const Attrs& attrs, const TensorSpec&,
                                  EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const Decoding decoding, Decoding::Make(attrs));
  RowReporter reporter(context);
  return SplitScalars<int32_t>(
      args[0], ResultRows(args, context), {}, context,
      [&](int64_t row, StringRef item, CodePoints& to) {
        Decode(row, item, decoding, reporter, to);
      });
}

absl::StatusOr<std::vector<TensorSpec>> InferDecodeRagged(
    absl::Span<const ArgSpec> args, const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("strings.unicode_decode", args[0]));
  PENSTOCK_RETURN_IF_ERROR(CheckRank("strings.unicode_decode", args[0], 1));
  PENSTOCK_RETURN_IF_ERROR(Decoding::Make(attrs).status());
  return RaggedSpecs(DType::kInt32, args[0]);
}

absl::StatusOr<std::vector<Column>> EvalDecodeRagged(
    absl::Span<const Arg> args, const Attrs& attrs,
    absl::Span<const TensorSpec>, EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const Decoding decoding, Decoding::Make(attrs));
  RowReporter reporter(context);
  return SplitVectors<int32_t>(
      args[0], ResultRows(args, context), {}, context,
      [&](int64_t row, StringRef item, CodePoints& to) {
        Decode(row, item, decoding, reporter, to);
      });
}

absl::StatusOr<TensorSpec> InferEncode(absl::Span<const ArgSpec> args,
                                       const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(
      CheckInts("strings.unicode_encode's input", args[0], 1));
  PENSTOCK_RETURN_IF_ERROR(CheckRank("strings.unicode_encode", args[0], 1));
  return TensorSpec{DType::kString, {}};
}

absl::StatusOr<Column> EvalEncode(absl::Span<const Arg> args, const Attrs&,
                                  const TensorSpec&, EvalContext& context) {
  const auto blocks = ByteBlocks::Make();
  const Column& x = *args[0].column;
  return MakeRows(
      DType::kString, 0, ResultRows(args, context), true, {blocks}, context,
      [](int64_t, int64_t*) { return absl::OkStatus(); },
      [&](int64_t row, absl::Span<const int64_t>, std::byte* out) {
        const Ints codes = ReadInts(x, RowIndex(args[0], row));
        char* const begin = blocks->Allocate(codes.size() * 4);
        char* end = begin;
        for (int64_t code : codes) {
          const bool is_one = code >= 0 && code <= kMaxCodePoint &&
                              !(code >= 0xD800 && code <= 0xDFFF);
          end = WriteCodePoint(
              is_one ? static_cast<int32_t>(code) : kReplacement, end);
        }
        blocks->GiveBack(codes.size() * 4 - (end - begin));
        *reinterpret_cast<StringRef*>(out) = {
            begin, static_cast<uint64_t>(end - begin)};
      });
}

}  // namespace

std::vector<Function> StringMeasureFunctions() {
  const Param input = {"input", ParamKind::kTensor, "", "Strings."};
  const Param unit = {"unit", ParamKind::kText, "\"BYTE\"",
                      "What is counted: \"BYTE\" or \"UTF8_CHAR\"."};
  const std::vector<Param> decode = {
      input,
      {"input_encoding", ParamKind::kText, "\"UTF-8\"", "\"UTF-8\"."},
      {"errors", ParamKind::kText, "\"replace\"",
       "What ill-formed bytes become: \"replace\", \"ignore\", \"strict\"."},
      {"replacement_char", ParamKind::kInt, "65533", "For \"replace\"."}};
  return {
      {.name = "strings.length",
       .params = {input, unit},
       .doc = "How long the strings are, as int32.",
       .example = ">>> ps.strings.length([\"abc\", \"ä\"])\n"
                  "array([3, 2], dtype=int32)",
       .infer = InferLength,
       .eval = EvalLength},
      {.name = "strings.substr",
       .params = {input,
                  {"pos", ParamKind::kTensor, "",
                   "Where to begin; from the end if negative."},
                  {"len", ParamKind::kTensor, "",
                   "How long; the end of a string ends it earlier."},
                  unit},
       .doc = "Parts of the strings. A pos outside of a string is an error.",
       .example = ">>> ps.strings.substr([\"hello\", \"world\"], -4, 2)\n"
                  "array([b'el', b'or'], dtype=object)",
       .infer = InferSubstr,
       .eval = EvalSubstr},
      {.name = "strings.unicode_decode",
       .params = decode,
       .doc = "The code points of a string.",
       .example = "",
       .infer = InferDecode,
       .eval = EvalDecode,
       .is_internal = true},
      {.name = "strings.unicode_decode_ragged",
       .params = decode,
       .doc = "The code points of strings.",
       .example = "",
       .infer = nullptr,
       .eval = nullptr,
       .infer_parts = InferDecodeRagged,
       .eval_parts = EvalDecodeRagged,
       .is_internal = true},
      {.name = "strings.unicode_encode",
       .params = {{"input", ParamKind::kTensor, "", "A vector of integers."}},
       .doc = "The UTF-8 string of code points; what is none becomes U+FFFD.",
       .example = ">>> ps.strings.unicode_encode([104, 228])\nb'h\\xc3\\xa4'",
       .infer = InferEncode,
       .eval = EvalEncode},
  };
}

}  // namespace penstock::functions
