#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/cast.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/number.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

template <typename F>
auto VisitItemSize(size_t item_size, F&& f) {
  switch (item_size) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(StringRef{});
  }
}

// The shape that an argument says.
absl::StatusOr<PartialShape> ShapeFrom(std::string_view what,
                                       const ArgSpec& arg, DType dtype) {
  PENSTOCK_RETURN_IF_ERROR(CheckInts(what, arg, 1));
  if (const std::optional<Ints> dims = ConstantInts(arg)) {
    PENSTOCK_RETURN_IF_ERROR(CheckElementSize(*dims, dtype));
    return PartialShape(absl::Span<const int64_t>(*dims));
  }
  const std::optional<int64_t> rank = KnownCount(arg);
  if (!rank) return PartialShape::UnknownRank();
  return PartialShape(PartialShape::Dims(*rank));
}

// Rows of the shapes that `shape` says, every item being the one of `value`.
absl::StatusOr<Column> Filled(const Arg& shape, const Arg& value,
                              EvalContext& context) {
  const Arg args[] = {shape, value};
  const int64_t rows = ResultRows(args, context);
  PENSTOCK_ASSIGN_OR_RETURN(const int rank, RankFrom(shape, rows));
  const Column& dims_column = *shape.column;
  const bool is_int64 =
      dims_column.dtype() == DType::kInt64 && dims_column.is_dense();
  return VisitItemSize(
      ItemSize(value.column->dtype()),
      [&](auto item) -> absl::StatusOr<Column> {
        using T = decltype(item);
        return MakeRows(
            value.column->dtype(), rank, rows, shape.is_uniform,
            StringPins(args), context,
            [&](int64_t row, int64_t* dims) {
              if (is_int64) {
                std::copy_n(dims_column.Row<int64_t>(RowIndex(shape, row)),
                            rank, dims);
              } else {
                const Ints ints = ReadInts(dims_column, RowIndex(shape, row));
                std::copy(ints.begin(), ints.end(), dims);
              }
              return absl::OkStatus();
            },
            [&](int64_t row, absl::Span<const int64_t> own, std::byte* out) {
              std::fill_n(reinterpret_cast<T*>(out), NumItems(own),
                          *value.column->Row<T>(RowIndex(value, row)));
            });
      });
}

absl::StatusOr<TensorSpec> InferFill(absl::Span<const ArgSpec> args,
                                     const Attrs&) {
  TensorSpec result;
  result.dtype = args[1].spec.dtype;
  if (args[1].spec.shape.has_rank() && args[1].spec.shape.rank() != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "fill's value must be a scalar; got ", args[1].spec.ToString()));
  }
  PENSTOCK_ASSIGN_OR_RETURN(result.shape,
                            ShapeFrom("fill's dims", args[0], result.dtype));
  return result;
}

absl::StatusOr<Column> EvalFill(absl::Span<const Arg> args, const Attrs&,
                                const TensorSpec&, EvalContext& context) {
  if (args[1].column->rank() != 0) {
    return absl::InvalidArgumentError("fill's value must be a scalar");
  }
  return Filled(args[0], args[1], context);
}

// One item of `dtype`: 0 or 1.
Column Unit(DType dtype, bool is_one) {
  return Cast(MakeColumn<bool>({is_one}), dtype);
}

template <bool kIsOne>
absl::StatusOr<TensorSpec> InferUnits(absl::Span<const ArgSpec> args,
                                      const Attrs& attrs) {
  TensorSpec result;
  PENSTOCK_ASSIGN_OR_RETURN(result.dtype,
                            DTypeAttr(attrs, "dtype", DType::kFloat64));
  if (kIsOne && result.dtype == DType::kString) {
    return absl::InvalidArgumentError("ones is not defined for string");
  }
  PENSTOCK_ASSIGN_OR_RETURN(result.shape,
                            ShapeFrom("shape", args[0], result.dtype));
  return result;
}

template <bool kIsOne>
absl::StatusOr<Column> EvalUnits(absl::Span<const Arg> args, const Attrs&,
                                 const TensorSpec& result,
                                 EvalContext& context) {
  const Column value = result.dtype == DType::kString
                           ? ZeroColumn(DType::kString, {}, 1)
                           : Unit(result.dtype, kIsOne);
  return Filled(args[0], {&value, /*is_uniform=*/true}, context);
}

// The rows of x's shapes, filled with `value`.
absl::StatusOr<Column> FilledLike(const Column& x, const Arg& value,
                                  int64_t rows, bool x_is_uniform,
                                  EvalContext& context) {
  const Arg args[] = {value};
  return VisitItemSize(
      ItemSize(value.column->dtype()),
      [&](auto item) -> absl::StatusOr<Column> {
        using T = decltype(item);
        return MakeRows(
            value.column->dtype(), x.rank(), rows, x.is_dense(),
            StringPins(args), context,
            [&](int64_t row, int64_t* dims) {
              const absl::Span<const int64_t> shape =
                  x.RowShape(x_is_uniform ? 0 : row);
              std::copy(shape.begin(), shape.end(), dims);
              return absl::OkStatus();
            },
            [&](int64_t row, absl::Span<const int64_t> own, std::byte* out) {
              std::fill_n(reinterpret_cast<T*>(out), NumItems(own),
                          *value.column->Row<T>(RowIndex(value, row)));
            });
      });
}

template <bool kIsOne>
absl::StatusOr<TensorSpec> InferUnitsLike(absl::Span<const ArgSpec> args,
                                          const Attrs& attrs) {
  TensorSpec result = args[0].spec;
  PENSTOCK_ASSIGN_OR_RETURN(result.dtype,
                            DTypeAttr(attrs, "dtype", result.dtype));
  if (kIsOne && result.dtype == DType::kString) {
    return absl::InvalidArgumentError("ones_like is not defined for string");
  }
  return result;
}

template <bool kIsOne>
absl::StatusOr<Column> EvalUnitsLike(absl::Span<const Arg> args, const Attrs&,
                                     const TensorSpec& result,
                                     EvalContext& context) {
  const Column value = result.dtype == DType::kString
                           ? ZeroColumn(DType::kString, {}, 1)
                           : Unit(result.dtype, kIsOne);
  return FilledLike(*args[0].column, {&value, /*is_uniform=*/true},
                    ResultRows(args, context), args[0].is_uniform, context);
}

absl::StatusOr<TensorSpec> InferFullLike(absl::Span<const ArgSpec> args,
                                         const Attrs& attrs) {
  TensorSpec result = args[0].spec;
  PENSTOCK_ASSIGN_OR_RETURN(result.dtype,
                            DTypeAttr(attrs, "dtype", result.dtype));
  const bool is_text = result.dtype == DType::kString;
  if (is_text != (args[1].spec.dtype == DType::kString) ||
      (args[1].spec.shape.has_rank() && args[1].spec.shape.rank() != 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "full_like's value must be a scalar for ", Text(Name(result.dtype)),
        "; got ", args[1].spec.ToString()));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckFits(args[1], result.dtype));
  return result;
}

absl::StatusOr<Column> EvalFullLike(absl::Span<const Arg> args, const Attrs&,
                                    const TensorSpec& result,
                                    EvalContext& context) {
  if (args[1].column->rank() != 0) {
    return absl::InvalidArgumentError("full_like's value must be a scalar");
  }
  const Column value = Cast(*args[1].column, result.dtype);
  return FilledLike(*args[0].column, {&value, args[1].is_uniform},
                    ResultRows(args, context), args[0].is_uniform, context);
}

// start, stop and step; one argument is the stop, two have a step of 1.
absl::StatusOr<TensorSpec> InferArange(absl::Span<const ArgSpec> args,
                                       const Attrs&) {
  PENSTOCK_ASSIGN_OR_RETURN(const DType promoted,
                            PromoteOrError("arange", args));
  TensorSpec result;
  PENSTOCK_ASSIGN_OR_RETURN(
      result.dtype, ComputeDTypeOrError("arange", Rule::kReal, promoted));
  for (const ArgSpec& arg : args) {
    PENSTOCK_RETURN_IF_ERROR(CheckFits(arg, result.dtype));
    if (arg.spec.shape.has_rank() && arg.spec.shape.rank() != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("arange needs scalars; got ", arg.spec.ToString()));
    }
  }
  result.shape = PartialShape(PartialShape::Dims(1));
  return result;
}

template <typename T>
int64_t CountFrom(T start, T stop, T step) {
  if constexpr (Integer<T>) {
    if (step > 0 ? start >= stop : start <= stop) return 0;
    using U = std::make_unsigned_t<T>;
    const U distance = step > 0 ? static_cast<U>(stop) - static_cast<U>(start)
                                : static_cast<U>(start) - static_cast<U>(stop);
    const U size = step > 0 ? static_cast<U>(step)
                            : static_cast<U>(U{0} - static_cast<U>(step));
    return static_cast<int64_t>((distance - 1) / size + 1);
  } else {
    const double count =
        std::ceil((static_cast<double>(stop) - static_cast<double>(start)) /
                  static_cast<double>(step));
    if (!(count > 0)) return 0;
    return count < 9e18 ? static_cast<int64_t>(count) : int64_t{1} << 62;
  }
}

absl::StatusOr<Column> EvalArange(absl::Span<const Arg> args, const Attrs&,
                                  const TensorSpec& result,
                                  EvalContext& context) {
  Column columns[3];
  for (size_t k = 0; k < args.size(); ++k) {
    columns[k] = Cast(*args[k].column, result.dtype);
  }
  return VisitDType(result.dtype, [&](auto item) -> absl::StatusOr<Column> {
    using T = decltype(item);
    using C = std::conditional_t<
        std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>, float, T>;
    if constexpr (Real<C>) {
      auto value = [&](size_t k, int64_t row, C otherwise) {
        if (k >= args.size()) return otherwise;
        return static_cast<C>(*columns[k].Row<T>(RowIndex(args[k], row)));
      };
      auto start = [&](int64_t row) {
        return args.size() == 1 ? C{0} : value(0, row, 0);
      };
      const size_t stop = args.size() == 1 ? 0 : 1;
      return MakeRows(
          result.dtype, 1, ResultRows(args, context), false, {}, context,
          [&](int64_t row, int64_t* dims) {
            const C step = value(2, row, 1);
            if (step == 0) {
              return absl::InvalidArgumentError("arange's step must not be 0");
            }
            dims[0] = CountFrom<C>(start(row), value(stop, row, 0), step);
            return absl::OkStatus();
          },
          [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
            T* to = reinterpret_cast<T*>(out);
            const C first = start(row);
            if constexpr (Integer<C>) {
              const C step = value(2, row, 1);
              C at = first;
              for (int64_t i = 0; i < shape[0]; ++i) {
                to[i] = at;
                at = WrapAdd(at, step);
              }
            } else {
              // As numpy: the step is what the first two values differ by.
              const C step = (first + value(2, row, 1)) - first;
              for (int64_t i = 0; i < shape[0]; ++i) {
                to[i] = static_cast<T>(first + static_cast<C>(i) * step);
              }
            }
          });
    } else {
      return absl::InternalError("arange of no real dtype");
    }
  });
}

}  // namespace

std::vector<Function> MakeFunctions() {
  const Param shape = {"shape", ParamKind::kTensor, "", "The dimensions."};
  const Param dtype = {"dtype", ParamKind::kDType, "float64",
                       "That of the result."};
  const Param x = {"x", ParamKind::kTensor, "", "Whose shape is taken."};
  const Param like = {"dtype", ParamKind::kDType, "None",
                      "That of the result; None means that of x."};
  return {
      {.name = "fill",
       .params = {{"dims", ParamKind::kTensor, "", "The dimensions."},
                  {"value", ParamKind::kTensor, "", "A scalar."}},
       .doc = "An array of the given dimensions with one value everywhere.",
       .example = ">>> ps.fill([3], 7)\narray([7, 7, 7])",
       .infer = InferFill,
       .eval = EvalFill},
      {.name = "zeros",
       .params = {shape, dtype},
       .doc = "An array of zeros (of empty strings).",
       .example = ">>> ps.zeros((2,), np.int64)\narray([0, 0])",
       .infer = InferUnits<false>,
       .eval = EvalUnits<false>},
      {.name = "ones",
       .params = {shape, dtype},
       .doc = "An array of ones.",
       .example = ">>> ps.ones((2,), np.int64)\narray([1, 1])",
       .infer = InferUnits<true>,
       .eval = EvalUnits<true>},
      {.name = "zeros_like",
       .params = {x, like},
       .doc = "Zeros in the shape of x.",
       .example = ">>> ps.zeros_like(np.array([1, 2]))\narray([0, 0])",
       .infer = InferUnitsLike<false>,
       .eval = EvalUnitsLike<false>},
      {.name = "ones_like",
       .params = {x, like},
       .doc = "Ones in the shape of x.",
       .example = ">>> ps.ones_like(np.array([1, 2]))\narray([1, 1])",
       .infer = InferUnitsLike<true>,
       .eval = EvalUnitsLike<true>},
      {.name = "full_like",
       .params = {x, {"value", ParamKind::kTensor, "", "A scalar."}, like},
       .doc = "One value in the shape of x.",
       .example = ">>> ps.full_like(np.array([1, 2]), 7)\narray([7, 7])",
       .infer = InferFullLike,
       .eval = EvalFullLike},
      {.name = "arange",
       .params = {{"start", ParamKind::kTensor, "",
                   "The first value; alone, the end, and 0 is the first."},
                  {"stop", ParamKind::kTensor, "None",
                   "The end, which is left out."},
                  {"step", ParamKind::kTensor, "None",
                   "From one value to the next; None means 1."}},
       .doc = "Evenly spaced values.",
       .example = ">>> ps.arange(2, 8, 3)\narray([2, 5])",
       .infer = InferArange,
       .eval = EvalArange},
  };
}

}  // namespace penstock::functions
