// Numbers from strings and strings from numbers.
#include <charconv>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/number.h"
#include "penstock/functions/parse_number.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/string_items.h"

namespace penstock::functions {
namespace {

bool CanBeParsedAs(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 ||
         dtype == DType::kInt32 || dtype == DType::kInt64 ||
         dtype == DType::kUint32 || dtype == DType::kUint64;
}

absl::StatusOr<TensorSpec> InferToNumber(absl::Span<const ArgSpec> args,
                                         const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("strings.to_number", args[0]));
  TensorSpec result = args[0].spec;
  PENSTOCK_ASSIGN_OR_RETURN(result.dtype,
                            DTypeAttr(attrs, "out_type", DType::kFloat32));
  if (!CanBeParsedAs(result.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "out_type must be float32, float64, int32, int64, uint32 or uint64; "
        "got ",
        Text(Name(result.dtype))));
  }
  return result;
}

absl::StatusOr<Column> EvalToNumber(absl::Span<const Arg> args, const Attrs&,
                                    const TensorSpec& result,
                                    EvalContext& context) {
  RowReporter reporter(context);
  return VisitDType(result.dtype, [&](auto item) -> absl::StatusOr<Column> {
    using T = decltype(item);
    if constexpr (Real<T> && sizeof(T) >= 4) {
      return MapItems<StringRef, T>(
          args[0], ResultRows(args, context), {},
          [&](int64_t row, StringRef text) {
            T value{};
            if (!ParseNumber(text.view(), value)) {
              reporter.Report(row, [&] {
                return absl::InvalidArgumentError(absl::StrCat(
                    "strings.to_number needs a number of type ",
                    Text(Name(result.dtype)), "; got ", Quoted(text.view())));
              });
              value = T{};
            }
            return value;
          });
    } else {
      return absl::InternalError("strings.to_number got an unchecked dtype");
    }
  });
}

// How a number becomes text: printf's rules.
struct Format {
  bool is_plain = true;  // neither width, fill nor precision
  std::string flags;     // "%" to the precision
  char conversion = 'f';

  static absl::StatusOr<Format> Make(DType dtype, const Attrs& attrs);
};

constexpr int64_t kMaxWidth = 4096;

absl::StatusOr<Format> Format::Make(DType dtype, const Attrs& attrs) {
  Format format;
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t precision,
                            IntAttr(attrs, "precision", -1));
  PENSTOCK_ASSIGN_OR_RETURN(const bool scientific,
                            BoolAttr(attrs, "scientific", false));
  PENSTOCK_ASSIGN_OR_RETURN(const bool shortest,
                            BoolAttr(attrs, "shortest", false));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t width, IntAttr(attrs, "width", -1));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view fill,
                            TextAttrOr(attrs, "fill", ""));
  const bool is_float = IsFloat(dtype) || IsComplex(dtype);
  if (dtype == DType::kString && (precision >= 0 || width >= 0)) {
    return absl::InvalidArgumentError(
        "as_string of strings takes neither precision nor width");
  }
  if (scientific && shortest) {
    return absl::InvalidArgumentError(
        "as_string takes scientific or shortest; got both");
  }
  if (!is_float && (scientific || shortest || precision >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("precision, scientific and shortest are for floats; got ",
                     Text(Name(dtype))));
  }
  if (width > kMaxWidth || precision > kMaxWidth) {
    return absl::InvalidArgumentError(
        absl::StrCat("width and precision may be ", kMaxWidth, "; got ", width,
                     " and ", precision));
  }
  if (fill.size() > 1 || (!fill.empty() && fill != " " && fill != "+" &&
                          fill != "-" && fill != "0" && fill != "#")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "fill must be one of ' ', '+', '-', '0' and '#'; got ", Quoted(fill)));
  }
  format.is_plain = precision < 0 && width < 0 && fill.empty();
  format.flags = absl::StrCat("%", Text(fill));
  if (width > -1) absl::StrAppend(&format.flags, width);
  if (precision > -1) absl::StrAppend(&format.flags, ".", precision);
  format.conversion = scientific ? 'e' : shortest ? 'g' : 'f';
  return format;
}

// Writes numbers of one column.
class NumberWriter final {
 public:
  NumberWriter(const Format& format, ByteBlocks& blocks)
      : blocks_(blocks),
        is_plain_(format.is_plain),
        real_(absl::StrCat(format.flags, std::string(1, format.conversion))),
        signed_(absl::StrCat(format.flags, "lld")),
        unsigned_(absl::StrCat(format.flags, "llu")),
        text_(absl::StrCat(format.flags, "s")),
        complex_(absl::StrCat("(", real_, ",", real_, ")")) {}

  template <typename T>
  StringRef Write(const T& value) {
    if constexpr (std::same_as<T, StringRef>) {
      return value;
    } else if constexpr (Bool<T>) {
      return Printed(text_, value ? "true" : "false");
    } else if constexpr (Complex<T>) {
      return Printed(complex_, static_cast<double>(value.real()),
                     static_cast<double>(value.imag()));
    } else if constexpr (Integer<T>) {
      if (is_plain_) {
        char* out = blocks_.Allocate(24);
        const auto end = std::to_chars(out, out + 24, value).ptr;
        blocks_.GiveBack(24 - (end - out));
        return {out, static_cast<uint64_t>(end - out)};
      }
      if constexpr (std::is_signed_v<T>) {
        return Printed(signed_, static_cast<long long>(value));
      } else {
        return Printed(unsigned_, static_cast<unsigned long long>(value));
      }
    } else {
      return Printed(real_,
                     static_cast<double>(static_cast<ComputeType<T>>(value)));
    }
  }

 private:
  template <typename T>
  using ComputeType =
      std::conditional_t<std::same_as<T, Half> || std::same_as<T, Bfloat16>,
                         float, T>;

  // What snprintf() makes of a format that this class wrote.
  template <typename... Values>
  StringRef Printed(const std::string& format, Values... values) {
    constexpr int kUsual = 64;
    char* out = blocks_.Allocate(kUsual);
    const int size = std::snprintf(out, kUsual, format.c_str(), values...);
    blocks_.GiveBack(kUsual - (size < kUsual ? size : 0));
    if (size < kUsual) return {out, static_cast<uint64_t>(size)};
    out = blocks_.Allocate(size + 1);
    std::snprintf(out, size + 1, format.c_str(), values...);
    blocks_.GiveBack(1);
    return {out, static_cast<uint64_t>(size)};
  }

  ByteBlocks& blocks_;
  bool is_plain_;
  std::string real_;
  std::string signed_;
  std::string unsigned_;
  std::string text_;
  std::string complex_;
};

absl::StatusOr<TensorSpec> InferAsString(absl::Span<const ArgSpec> args,
                                         const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(Format::Make(args[0].spec.dtype, attrs).status());
  return TensorSpec{DType::kString, args[0].spec.shape};
}

absl::StatusOr<Column> EvalAsString(absl::Span<const Arg> args,
                                    const Attrs& attrs, const TensorSpec&,
                                    EvalContext& context) {
  const DType dtype = args[0].column->dtype();
  if (dtype == DType::kString) return *args[0].column;
  PENSTOCK_ASSIGN_OR_RETURN(const Format format, Format::Make(dtype, attrs));
  const auto blocks = ByteBlocks::Make();
  NumberWriter writer(format, *blocks);
  return VisitDType(dtype, [&](auto item) -> Column {
    using T = decltype(item);
    return MapItems<T, StringRef>(
        args[0], ResultRows(args, context), {blocks},
        [&](int64_t, const T& value) { return writer.Write(value); });
  });
}

}  // namespace

std::vector<Function> StringNumberFunctions() {
  return {
      {.name = "strings.to_number",
       .params = {{"input", ParamKind::kTensor, "", "Strings."},
                  {"out_type", ParamKind::kDType, "float32",
                   "float32, float64, int32, int64, uint32 or uint64."}},
       .doc = "The numbers that strings spell. Any other string is an error.",
       .example = ">>> ps.strings.to_number([\"1.5\", \" 2e3\"])\n"
                  "array([1.5e+00, 2.0e+03], dtype=float32)",
       .infer = InferToNumber,
       .eval = EvalToNumber},
      {.name = "strings.as_string",
       .params =
           {{"input", ParamKind::kTensor, "", "Numbers or bools."},
            {"precision", ParamKind::kInt, "-1",
             "Digits after the point, if not negative."},
            {"scientific", ParamKind::kBool, "False", "As 1.5e+00."},
            {"shortest", ParamKind::kBool, "False",
             "Scientific or not, whichever is shorter."},
            {"width", ParamKind::kInt, "-1", "The least characters."},
            {"fill", ParamKind::kText, "\"\"",
             "One of printf's flags: \"0\", \" \", \"+\", \"-\", \"#\"."}},
       .doc = "The numbers as strings, as printf writes them.",
       .example = ">>> ps.strings.as_string([3.14159, 2.0], precision=2)\n"
                  "array([b'3.14', b'2.00'], dtype=object)",
       .infer = InferAsString,
       .eval = EvalAsString},
  };
}

}  // namespace penstock::functions
