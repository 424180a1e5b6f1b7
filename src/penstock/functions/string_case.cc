#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/udata.h>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/string_items.h"
#include "penstock/functions/string_utf8.h"

// ICU's case mappings, character properties and normal forms are compiled into
// its code. The rest of its data (31 MB: locales, converters, collation) is
// never asked for: where ICU looks for it there is an empty table, the one of
// its own "stubdata" library.
extern "C" {
struct EmptyIcuData {
  uint16_t header_bytes;
  uint8_t magic[2];
  UDataInfo info;
  char padding[8];
  uint32_t count;
  uint32_t reserved;
  int entries[2];
};
alignas(16) extern const EmptyIcuData U_ICUDATA_ENTRY_POINT;
alignas(16) const EmptyIcuData U_ICUDATA_ENTRY_POINT = {32,
                                                        {0xda, 0x27},
                                                        {sizeof(UDataInfo),
                                                         0,
                                                         U_IS_BIG_ENDIAN,
                                                         U_CHARSET_FAMILY,
                                                         sizeof(UChar),
                                                         0,
                                                         {'T', 'o', 'C', 'P'},
                                                         {1, 0, 0, 0},
                                                         {0, 0, 0, 0}},
                                                        {},
                                                        0,
                                                        0,
                                                        {}};
}

namespace penstock::functions {
namespace {

enum class Encoding { kAscii, kUtf8 };

absl::StatusOr<Encoding> EncodingAttr(const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view name,
                            TextAttrOr(attrs, "encoding", ""));
  if (name.empty()) return Encoding::kAscii;
  if (name == "utf-8" || name == "UTF-8") return Encoding::kUtf8;
  return absl::InvalidArgumentError(
      absl::StrCat("encoding must be \"\" or \"utf-8\"; got ", Quoted(name)));
}

struct Lower {
  static constexpr std::string_view kName = "strings.lower";
  static char Ascii(char c) {
    return static_cast<char>(c ^ ((c >= 'A' && c <= 'Z') << 5));
  }
  static void Utf8(icu::StringPiece text, icu::ByteSink& to,
                   UErrorCode& error) {
    icu::CaseMap::utf8ToLower("", 0, text, to, nullptr, error);
  }
};

struct Upper {
  static constexpr std::string_view kName = "strings.upper";
  static char Ascii(char c) {
    return static_cast<char>(c ^ ((c >= 'a' && c <= 'z') << 5));
  }
  static void Utf8(icu::StringPiece text, icu::ByteSink& to,
                   UErrorCode& error) {
    icu::CaseMap::utf8ToUpper("", 0, text, to, nullptr, error);
  }
};

bool IsAscii(std::string_view text) {
  char all = 0;
  for (char c : text) all |= c;
  return (all & 0x80) == 0;
}

template <typename Op>
absl::StatusOr<TensorSpec> InferCase(absl::Span<const ArgSpec> args,
                                     const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings(Op::kName, args[0]));
  PENSTOCK_RETURN_IF_ERROR(EncodingAttr(attrs).status());
  return args[0].spec;
}

template <typename Op>
absl::StatusOr<Column> EvalCase(absl::Span<const Arg> args, const Attrs& attrs,
                                const TensorSpec&, EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const Encoding encoding, EncodingAttr(attrs));
  const auto blocks = ByteBlocks::Make();
  RowReporter reporter(context);
  std::string repaired;
  std::string wide;
  return MapItems<StringRef, StringRef>(
      args[0], ResultRows(args, context), {blocks},
      [&](int64_t row, StringRef item) -> StringRef {
        if (encoding == Encoding::kAscii || IsAscii(item.view())) {
          char* out = blocks->Allocate(item.size);
          for (size_t i = 0; i < item.size; ++i) {
            out[i] = Op::Ascii(item.data[i]);
          }
          return {out, item.size};
        }
        if (item.size > size_t{INT32_MAX} / 3) {  // ICU counts in int32
          reporter.Report(row, [&] {
            return absl::InvalidArgumentError(
                absl::StrCat(Text(Op::kName),
                             " of utf-8 takes 715827882 bytes;"
                             " got ",
                             item.size));
          });
          return {};
        }
        const std::string_view text = WellFormed(item.view(), repaired);
        wide.clear();
        icu::StringByteSink<std::string> sink(&wide);
        UErrorCode error = U_ZERO_ERROR;
        Op::Utf8({text.data(), static_cast<int32_t>(text.size())}, sink, error);
        if (U_FAILURE(error)) {
          reporter.Report(row, [&] {
            return absl::InvalidArgumentError(
                absl::StrCat(Text(Op::kName), " of ", Quoted(item.view()),
                             " failed: ", u_errorName(error)));
          });
          return {};
        }
        return blocks->Copy(wide);
      });
}

absl::StatusOr<TensorSpec> InferStrip(absl::Span<const ArgSpec> args,
                                      const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("strings.strip", args[0]));
  return args[0].spec;
}

absl::StatusOr<Column> EvalStrip(absl::Span<const Arg> args, const Attrs&,
                                 const TensorSpec&, EvalContext& context) {
  return MapItems<StringRef, StringRef>(
      args[0], ResultRows(args, context), StringPins(args),
      [](int64_t, StringRef item) { return Ref(StripSpace(item.view())); });
}

}  // namespace

std::vector<Function> StringCaseFunctions() {
  const Param encoding = {"encoding", ParamKind::kText, "\"\"",
                          "\"\": letters of ASCII alone. \"utf-8\": all that "
                          "Unicode knows; ill-formed bytes become U+FFFD."};
  return {
      {.name = Lower::kName,
       .params = {{"input", ParamKind::kTensor, "", "Strings."}, encoding},
       .doc = "The strings in lower case.",
       .example = ">>> ps.strings.lower([\"Hello\", \"ÄB\"], \"utf-8\")\n"
                  "array([b'hello', b'\\xc3\\xa4b'], dtype=object)",
       .infer = InferCase<Lower>,
       .eval = EvalCase<Lower>},
      {.name = Upper::kName,
       .params = {{"input", ParamKind::kTensor, "", "Strings."}, encoding},
       .doc = "The strings in upper case.",
       .example = ">>> ps.strings.upper(\"straße\", \"utf-8\")\n"
                  "b'STRASSE'",
       .infer = InferCase<Upper>,
       .eval = EvalCase<Upper>},
      {.name = "strings.strip",
       .params = {{"input", ParamKind::kTensor, "", "Strings."}},
       .doc = "The strings without ASCII's white space at both ends.",
       .example = ">>> ps.strings.strip(\" a b\\n\")\n"
                  "b'a b'",
       .infer = InferStrip,
       .eval = EvalStrip},
  };
}

}  // namespace penstock::functions
