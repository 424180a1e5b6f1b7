// Tensors written into a text, as TensorFlow writes them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/number.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"
#include "penstock/functions/string_items.h"

namespace penstock::functions {
namespace {

// What lies between the placeholders.
absl::StatusOr<std::vector<std::string>> Pieces(const Attrs& attrs,
                                                size_t inputs) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view text,
                            TextAttr(attrs, "template"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view placeholder,
                            TextAttr(attrs, "placeholder"));
  if (placeholder.empty()) {
    return absl::InvalidArgumentError(
        "placeholder must be a text that stands for an input; got \"\"");
  }
  std::vector<std::string> pieces;
  size_t at = 0;
  for (;;) {
    const size_t next = text.find(placeholder, at);
    pieces.emplace_back(text.substr(at, next - at));
    if (next == std::string_view::npos) break;
    at = next + placeholder.size();
  }
  if (pieces.size() == inputs + 1) return pieces;
  return absl::InvalidArgumentError(absl::StrCat(
      "a template must have a placeholder for each of its inputs, ", inputs,
      "; got ", pieces.size() - 1, " of ", Quoted(placeholder)));
}

absl::StatusOr<TensorSpec> InferFormat(absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(Pieces(attrs, args.size()).status());
  PENSTOCK_RETURN_IF_ERROR(IntAttr(attrs, "summarize", 3).status());
  for (const ArgSpec& arg : args) {
    if (IsComplex(arg.spec.dtype)) {
      return absl::InvalidArgumentError(
          absl::StrCat("format takes numbers, bools and strings; got ",
                       arg.spec.ToString()));
    }
  }
  return TensorSpec::Scalar(DType::kString);
}

// With as few digits as read back as the same, of two numbers of them.
void AppendNumber(double value, bool is_double, std::string& out) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*g", is_double ? 15 : 6, value);
  const bool is_same =
      is_double ? std::strtod(text, nullptr) == value
                : std::strtof(text, nullptr) == static_cast<float>(value);
  if (!is_same && value == value) {
    std::snprintf(text, sizeof(text), "%.*g", is_double ? 17 : 9, value);
  }
  // Of NaN, not its sign.
  out += value == value ? text : "nan";
}

template <typename T>
void AppendItem(const T& item, std::string& out) {
  if constexpr (std::is_same_v<T, StringRef>) {
    absl::StrAppend(&out, "\"",
                    absl::CEscape(absl::string_view(item.data, item.size)),
                    "\"");
  } else if constexpr (std::is_same_v<T, double>) {
    AppendNumber(item, true, out);
  } else if constexpr (std::is_same_v<T, bool>) {
    out += item ? '1' : '0';
  } else if constexpr (std::is_integral_v<T>) {
    // Not as a character.
    if constexpr (std::is_signed_v<T>) {
      absl::StrAppend(&out, static_cast<int64_t>(item));
    } else {
      absl::StrAppend(&out, static_cast<uint64_t>(item));
    }
  } else {
    AppendNumber(static_cast<float>(item), false, out);
  }
}

// Between two parts of dimension `dim`.
void AppendSpace(size_t dim, size_t rank, std::string& out) {
  if (dim + 1 == rank) {
    out += ' ';
    return;
  }
  out.append(rank - dim - 1, '\n');
  out.append(dim + 1, ' ');
}

// The items of dimension `dim` and those inside it; of more than twice
// `at_ends`, only so many at either end.
template <typename T>
void AppendDim(size_t dim, absl::Span<const int64_t> shape, int64_t at_ends,
               const T* items, std::string& out) {
  if (dim == shape.size()) return AppendItem(*items, out);
  const int64_t count = shape[dim];
  const int64_t step = NumItems(shape.subspan(dim + 1));
  out += '[';
  for (int64_t i = 0; i < std::min(at_ends, count); ++i) {
    if (i > 0) AppendSpace(dim, shape.size(), out);
    AppendDim(dim + 1, shape, at_ends, items + i * step, out);
  }
  if (count > 2 * at_ends) {
    AppendSpace(dim, shape.size(), out);
    out += "...";
  }
  for (int64_t i = std::max(at_ends, count - at_ends); i < count; ++i) {
    AppendSpace(dim, shape.size(), out);
    AppendDim(dim + 1, shape, at_ends, items + i * step, out);
  }
  out += ']';
}

void AppendTensor(const Column& column, int64_t row, int64_t summarize,
                  std::string& out) {
  const absl::Span<const int64_t> shape = column.RowShape(row);
  const int64_t count = NumItems(shape);
  const int64_t at_ends = summarize < 0 ? count : std::min(summarize, count);
  if (shape.empty() && at_ends == 0) {
    out += "...";
    return;
  }
  VisitDType(column.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!Complex<T>) {
      AppendDim(0, shape, at_ends, column.Row<T>(row), out);
    }
  });
}

absl::StatusOr<Column> EvalFormat(absl::Span<const Arg> args,
                                  const Attrs& attrs, const TensorSpec&,
                                  EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> pieces,
                            Pieces(attrs, args.size()));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t summarize,
                            IntAttr(attrs, "summarize", 3));
  const int64_t rows = ResultRows(args, context);
  const auto blocks = ByteBlocks::Make();
  Buffer refs = Buffer::Allocate(rows * sizeof(StringRef));
  auto* ref = refs.MutableAs<StringRef>();
  std::string text;
  for (int64_t row = 0; row < rows; ++row) {
    text = pieces[0];
    for (size_t i = 0; i < args.size(); ++i) {
      AppendTensor(*args[i].column, RowIndex(args[i], row), summarize, text);
      text += pieces[i + 1];
    }
    if (static_cast<int64_t>(text.size()) > kMaxElementBytes) {
      ReportRow(
          context, row,
          absl::InvalidArgumentError(absl::StrCat(
              "a string may have ", kMaxElementBytes, " bytes; format gives ",
              text.size(), "\n  Give it a summarize of 0 or more.")));
      text.clear();
    }
    ref[row] = blocks->Copy(text);
  }
  return Column::Dense(DType::kString, {}, rows, std::move(refs), {blocks});
}

}  // namespace

std::vector<Function> StringFormatFunctions() {
  return {
      {.name = "strings.format",
       .params = {{"inputs", ParamKind::kTensors, "", "Any tensors."},
                  {"template", ParamKind::kText, "", "With placeholders."},
                  {"placeholder", ParamKind::kText, "\"{}\"",
                   "What stands for an input."},
                  {"summarize", ParamKind::kInt, "3",
                   "Items at either end of a dimension."}},
       .doc = "A text with tensors in it.",
       .example = "",
       .infer = InferFormat,
       .eval = EvalFormat,
       .is_internal = true},
  };
}

}  // namespace penstock::functions
