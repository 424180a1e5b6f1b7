// What must hold of values: an element of which it does not is an error.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/cast.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

// The wanted sizes; -1 where any will do.
absl::StatusOr<Ints> WantedShape(const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Ints> wanted,
                            AxisAttr(attrs, "shape"));
  const Ints shape = wanted.value_or(Ints());
  for (const int64_t size : shape) {
    if (size < -1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "ensure_shape's sizes must be 0 or more, or -1; got ", size));
    }
  }
  return shape;
}

absl::Status WrongShape(absl::Span<const int64_t> wanted,
                        std::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected a value of shape ", Text(ToString(wanted)),
                   ", where -1 is any size; got ", Text(found)));
}

bool IsOf(absl::Span<const int64_t> wanted, absl::Span<const int64_t> found) {
  return std::equal(
      wanted.begin(), wanted.end(), found.begin(), found.end(),
      [](int64_t want, int64_t got) { return want == -1 || want == got; });
}

absl::StatusOr<TensorSpec> InferEnsureShape(absl::Span<const ArgSpec> args,
                                            const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const Ints wanted, WantedShape(attrs));
  TensorSpec result = args[0].spec;
  const PartialShape known = result.shape;
  PartialShape::Dims dims;
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::optional<int64_t> size;
    if (wanted[i] >= 0) size = wanted[i];
    if (known.has_rank() && i < known.dims().size() && known.dims()[i]) {
      if (size && *size != *known.dims()[i]) {
        return WrongShape(wanted, args[0].spec.ToString());
      }
      size = known.dims()[i];
    }
    dims.push_back(size);
  }
  if (known.has_rank() && known.dims().size() != wanted.size()) {
    return WrongShape(wanted, args[0].spec.ToString());
  }
  result.shape = PartialShape(std::move(dims));
  return result;
}

absl::StatusOr<Column> EvalEnsureShape(absl::Span<const Arg> args,
                                       const Attrs& attrs, const TensorSpec&,
                                       EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const Ints wanted, WantedShape(attrs));
  const Column& x = *args[0].column;
  if (x.is_dense() && IsOf(wanted, x.shape())) return x;
  return MakeViews(args[0], static_cast<int>(wanted.size()),
                   ResultRows(args, context), context,
                   [&](int64_t row, int64_t* dims) {
                     const absl::Span<const int64_t> found =
                         x.RowShape(RowIndex(args[0], row));
                     if (!IsOf(wanted, found)) {
                       return WrongShape(wanted, ToString(found));
                     }
                     std::copy(found.begin(), found.end(), dims);
                     return absl::OkStatus();
                   });
}

absl::StatusOr<TensorSpec> InferCheckNumerics(absl::Span<const ArgSpec> args,
                                              const Attrs&) {
  if (!IsFloat(args[0].spec.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "check_numerics needs floats; got ", args[0].spec.ToString()));
  }
  return args[0].spec;
}

template <typename T>
void CheckRows(const Column& x, int64_t rows, std::string_view message,
               EvalContext& context) {
  for (int64_t row = 0; row < rows; ++row) {
    const T* items = x.Row<T>(row);
    bool has_inf = false;
    bool has_nan = false;
    const int64_t count = x.RowItems(row);
    for (int64_t i = 0; i < count; ++i) {
      has_inf |= std::isinf(items[i]);
      has_nan |= std::isnan(items[i]);
    }
    if (!has_inf && !has_nan) continue;
    const std::string_view found = !has_nan   ? "Inf"
                                   : !has_inf ? "NaN"
                                              : "Inf and NaN";
    ReportRow(context, row,
              absl::InvalidArgumentError(absl::StrCat(
                  Text(message), " : Tensor had ", Text(found), " values")));
  }
}

absl::StatusOr<Column> EvalCheckNumerics(absl::Span<const Arg> args,
                                         const Attrs& attrs, const TensorSpec&,
                                         EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view message,
                            TextAttr(attrs, "message"));
  const Column& x = *args[0].column;
  const int64_t rows = ResultRows(args, context);
  if (x.dtype() == DType::kFloat64) {
    CheckRows<double>(x, rows, message, context);
  } else {
    CheckRows<float>(Cast(x, DType::kFloat32), rows, message, context);
  }
  return x;
}

}  // namespace

std::vector<Function> CheckFunctions() {
  return {
      {.name = "ensure_shape",
       .params = {{"x", ParamKind::kTensor, "", "Any value."},
                  {"shape", ParamKind::kInts, "",
                   "The sizes; -1 where any will do."}},
       .doc = "x itself, whose shape is known from here on; an element of "
              "another shape is an error.",
       .example = ">>> ps.ensure_shape(np.array([[1, 2]]), (-1, 2))\n"
                  "array([[1, 2]])",
       .infer = InferEnsureShape,
       .eval = EvalEnsureShape},
      {.name = "check_numerics",
       .params = {{"x", ParamKind::kTensor, "", "Floats."},
                  {"message", ParamKind::kText, "",
                   "What the error begins with."}},
       .doc = "x itself; an element with an infinite item, or one that is no "
              "number, is an error.",
       .example = ">>> ps.check_numerics(np.array([1.0, 2.0]), \"loss\")\n"
                  "array([1., 2.])",
       .infer = InferCheckNumerics,
       .eval = EvalCheckNumerics},
  };
}

}  // namespace penstock::functions
