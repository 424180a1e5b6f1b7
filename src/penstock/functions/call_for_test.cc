#include "penstock/functions/call_for_test.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"

namespace penstock::functions {
namespace {

template <typename T>
std::string RealText(T value) {
  if (std::isnan(value)) return "nan";
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return std::string(text, end);
}

template <typename T>
std::string ItemText(T item) {
  if constexpr (std::is_same_v<T, bool>) {
    return item ? "True" : "False";
  } else if constexpr (std::is_integral_v<T>) {
    return absl::StrCat(static_cast<int64_t>(item) < 0 && item > T{0}
                            ? absl::StrCat(static_cast<uint64_t>(item))
                            : absl::StrCat(static_cast<int64_t>(item)));
  } else if constexpr (std::is_floating_point_v<T>) {
    return RealText(item);
  } else if constexpr (std::is_same_v<T, StringRef>) {
    return "'" + std::string(item.view()) + "'";
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
    return RealText(static_cast<float>(item));
  } else {
    return absl::StrCat(RealText(item.real()), "+", RealText(item.imag()), "j");
  }
}

template <typename T>
const T* AppendItems(absl::Span<const int64_t> shape, const T* at,
                     std::string& text) {
  if (shape.empty()) {
    text += ItemText(*at);
    return at + 1;
  }
  text += "[";
  for (int64_t i = 0; i < shape[0]; ++i) {
    if (i > 0) text += " ";
    at = AppendItems(shape.subspan(1), at, text);
  }
  text += "]";
  return at;
}

}  // namespace

TestArg Strings(std::initializer_list<std::string_view> values) {
  return {TestArg::Kind::kRows,
          MakeStringColumn(absl::MakeConstSpan(values.begin(), values.size())),
          {}};
}

TestArg Constant(TestArg one_row) {
  one_row.kind = TestArg::Kind::kConstant;
  return one_row;
}

TestArg Bound(TestArg one_row) {
  one_row.kind = TestArg::Kind::kBound;
  return one_row;
}

std::string RowText(const Column& column, int64_t row) {
  std::string text;
  VisitDType(column.dtype(), [&](auto item) {
    using T = decltype(item);
    AppendItems(column.RowShape(row), column.Row<T>(row), text);
  });
  return text;
}

std::string Text(const Column& column, const std::vector<RowError>& errors) {
  std::string text = absl::StrCat(std::string(Name(column.dtype())), ":");
  size_t next = 0;
  for (int64_t row = 0; row < column.rows(); ++row) {
    absl::StrAppend(&text, row > 0 ? "; " : " ");
    if (next < errors.size() && errors[next].row == row) {
      absl::StrAppend(&text, "<", errors[next++].status.message(), ">");
    } else {
      absl::StrAppend(&text, RowText(column, row));
    }
  }
  return text;
}

absl::StatusOr<std::string> Call(std::string_view function,
                                 std::vector<TestArg> args, Attrs attrs,
                                 CallOptions options) {
  std::vector<Step> steps;
  std::vector<TensorSpec> argument_specs;
  std::vector<TensorSpec> bound_specs;
  std::vector<Column> arguments;
  std::vector<Column> bound;
  CallStep call{std::string(function), {}, std::move(attrs)};
  for (const TestArg& arg : args) {
    call.args.push_back(static_cast<uint32_t>(steps.size()));
    const TensorSpec spec{arg.column.dtype(), arg.shape};
    switch (arg.kind) {
      case TestArg::Kind::kRows:
        steps.push_back(ArgumentStep{static_cast<uint32_t>(arguments.size())});
        arguments.push_back(arg.column);
        argument_specs.push_back(spec);
        if (options.rows < 0) options.rows = arg.column.rows();
        break;
      case TestArg::Kind::kBound:
        steps.push_back(BoundStep{static_cast<uint32_t>(bound.size())});
        bound.push_back(arg.column);
        bound_specs.push_back(spec);
        break;
      default:
        steps.push_back(
            ConstantStep{arg.column, arg.kind == TestArg::Kind::kWeak});
    }
  }
  const auto last = static_cast<uint32_t>(steps.size());
  steps.push_back(std::move(call));
  PENSTOCK_ASSIGN_OR_RETURN(
      Program program,
      Program::Make(std::move(steps), {last}, argument_specs, bound_specs));
  std::vector<RowError> errors;
  EvalContext context;
  context.rows = options.rows < 0 ? 1 : options.rows;
  context.random_key = options.random_key;
  if (!options.lineage.empty()) context.lineage = options.lineage.data();
  context.known_errors = &options.known_errors;
  context.errors = &errors;
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<Column> results,
                            program.Run(arguments, bound, context));
  Chunk chunk{context.rows, {results[0]}, {}, errors};
  PENSTOCK_RETURN_IF_ERROR(CheckColumns(chunk, program.output_specs()));
  if (results[0].rows() != context.rows) {
    return absl::InternalError(absl::StrCat(results[0].rows(), " rows"));
  }
  return Text(results[0], errors);
}

std::string Got(std::string_view function, std::vector<TestArg> args,
                Attrs attrs, CallOptions options) {
  absl::StatusOr<std::string> text =
      Call(function, std::move(args), std::move(attrs), std::move(options));
  return text.ok() ? *text : std::string(text.status().message());
}

}  // namespace penstock::functions
