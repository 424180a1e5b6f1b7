#include <bit>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/elementwise.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/number.h"
#include "penstock/functions/rows.h"
#include "penstock/functions/string_concat.h"

namespace penstock::functions {
namespace {

struct Add {
  static constexpr std::string_view kName = "add";
  static constexpr Rule kRule = Rule::kNumber;
  template <Number T>
  static T Do(T a, T b) {
    if constexpr (Bool<T>) {
      return a | b;
    } else if constexpr (Integer<T>) {
      return WrapAdd(a, b);
    } else {
      return a + b;
    }
  }
};

// Of two strings, one after the other.
absl::StatusOr<TensorSpec> InferAdd(absl::Span<const ArgSpec> args,
                                    const Attrs&) {
  const bool is_text = args[0].spec.dtype == DType::kString &&
                       args[1].spec.dtype == DType::kString;
  return InferPromoted(Add::kName, is_text ? Rule::kAny : Add::kRule, args);
}

absl::StatusOr<Column> EvalAdd(absl::Span<const Arg> args, const Attrs& attrs,
                               const TensorSpec& result, EvalContext& context) {
  if (result.dtype == DType::kString) return ConcatStrings(args, context);
  return EvalSameType<Add>(args, attrs, result, context);
}

struct Subtract {
  static constexpr std::string_view kName = "subtract";
  static constexpr Rule kRule = Rule::kNotBool;
  template <Number T>
  requires(!Bool<T>) static T Do(T a, T b) {
    if constexpr (Integer<T>) {
      return WrapSubtract(a, b);
    } else {
      return a - b;
    }
  }
};

struct Multiply {
  static constexpr std::string_view kName = "multiply";
  static constexpr Rule kRule = Rule::kNumber;
  template <Number T>
  static T Do(T a, T b) {
    if constexpr (Bool<T>) {
      return a & b;
    } else if constexpr (Integer<T>) {
      return WrapMultiply(a, b);
    } else if constexpr (Complex<T>) {
      return Times(a, b);
    } else {
      return a * b;
    }
  }
};

struct TrueDivide {
  static constexpr std::string_view kName = "true_divide";
  static constexpr Rule kRule = Rule::kDivision;
  template <typename T>
  requires(Floating<T> || Complex<T>) static T Do(T a, T b) {
    if constexpr (Complex<T>) {
      return Divided(a, b);
    } else {
      return a / b;
    }
  }
};

// A division costs ten times a mask, and powers of two are what people divide
// by most.
template <Integer T>
bool IsPowerOfTwo(T value) {
  return value > 0 && std::has_single_bit(static_cast<uint64_t>(value));
}

struct FloorDivideOp {
  static constexpr std::string_view kName = "floor_divide";
  static constexpr Rule kRule = Rule::kReal;
  template <Real T>
  static T Do(T a, T b) {
    return FloorDivide(a, b);
  }
  template <typename Out, Integer T>
  static bool WithScalar(const T* a, T b, Out* __restrict out, int64_t count) {
    if (!IsPowerOfTwo(b)) return false;
    const int shift = std::countr_zero(static_cast<uint64_t>(b));
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(a[i] >> shift);
    return true;
  }
};

struct Mod {
  static constexpr std::string_view kName = "mod";
  static constexpr Rule kRule = Rule::kReal;
  template <Real T>
  static T Do(T a, T b) {
    return FloorMod(a, b);
  }
  template <typename Out, Integer T>
  static bool WithScalar(const T* a, T b, Out* __restrict out, int64_t count) {
    if (!IsPowerOfTwo(b)) return false;
    const T mask = static_cast<T>(b - 1);
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(a[i] & mask);
    return true;
  }
};

struct PowerOp {
  static constexpr std::string_view kName = "power";
  static constexpr Rule kRule = Rule::kBoolAsInt8;
  template <Number T>
  requires(!Bool<T>) static T Do(T a, T b) {
    if constexpr (Integer<T>) {
      return Power(a, b);
    } else {
      return std::pow(a, b);
    }
  }
  template <typename Out, Floating T>
  static bool WithScalar(const T* a, T b, Out* __restrict out, int64_t count) {
    if (b != T{2}) return false;
    for (int64_t i = 0; i < count; ++i) out[i] = a[i] * a[i];
    return true;
  }
};

struct MinimumOp {
  static constexpr std::string_view kName = "minimum";
  static constexpr Rule kRule = Rule::kNumber;
  template <Number T>
  static T Do(T a, T b) {
    return Minimum(a, b);
  }
};

struct MaximumOp {
  static constexpr std::string_view kName = "maximum";
  static constexpr Rule kRule = Rule::kNumber;
  template <Number T>
  static T Do(T a, T b) {
    return Maximum(a, b);
  }
};

constexpr std::string_view kNegativePower =
    "integers to negative integer powers are not allowed; cast to a float";

bool HasNegative(const Column& column, int64_t row) {
  const int64_t count = column.RowItems(row);
  return VisitDType(column.dtype(), [&](auto item) {
    using T = decltype(item);
    if constexpr (Integer<T> && std::is_signed_v<T>) {
      const T* items = column.Row<T>(row);
      for (int64_t i = 0; i < count; ++i) {
        if (items[i] < 0) return true;
      }
    }
    return false;
  });
}

absl::StatusOr<TensorSpec> InferPower(absl::Span<const ArgSpec> args,
                                      const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(TensorSpec spec,
                            InferSameType<PowerOp>(args, attrs));
  if (IsInteger(spec.dtype) && args[1].constant != nullptr &&
      HasNegative(*args[1].constant, 0)) {
    return absl::InvalidArgumentError(Text(kNegativePower));
  }
  return spec;
}

absl::StatusOr<Column> EvalPower(absl::Span<const Arg> args, const Attrs& attrs,
                                 const TensorSpec& result,
                                 EvalContext& context) {
  if (IsInteger(result.dtype) && IsInteger(args[1].column->dtype()) &&
      !IsUnsigned(args[1].column->dtype())) {
    const int64_t rows = ResultRows(args, context);
    for (int64_t row = 0; row < rows; ++row) {
      if (HasNegative(*args[1].column, RowIndex(args[1], row)) &&
          args[0].column->RowItems(RowIndex(args[0], row)) > 0) {
        ReportRow(context, row,
                  absl::InvalidArgumentError(Text(kNegativePower)));
      }
    }
  }
  return EvalSameType<PowerOp>(args, attrs, result, context);
}

absl::StatusOr<std::vector<TensorSpec>> InferDivMod(
    absl::Span<const ArgSpec> args, const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(TensorSpec spec,
                            InferSameType<FloorDivideOp>(args, attrs));
  return std::vector<TensorSpec>{spec, spec};
}

absl::StatusOr<std::vector<Column>> EvalDivMod(
    absl::Span<const Arg> args, const Attrs& attrs,
    absl::Span<const TensorSpec> results, EvalContext& context) {
  std::vector<Column> parts(2);
  PENSTOCK_ASSIGN_OR_RETURN(
      parts[0], EvalSameType<FloorDivideOp>(args, attrs, results[0], context));
  PENSTOCK_ASSIGN_OR_RETURN(
      parts[1], EvalSameType<Mod>(args, attrs, results[1], context));
  return parts;
}

template <typename Op>
Function Binary(std::string_view doc, std::string_view example) {
  return {.name = Op::kName,
          .params = {{"x", ParamKind::kTensor, "", "First operand."},
                     {"y", ParamKind::kTensor, "", "Second operand."}},
          .doc = doc,
          .example = example,
          .infer = InferSameType<Op>,
          .eval = EvalSameType<Op>};
}

}  // namespace

std::vector<Function> ArithmeticFunctions() {
  std::vector<Function> functions = {
      Binary<Add>("x + y. Integers wrap around; bools: or; strings are joined.",
                  ">>> ps.add(np.array([1, 2]), 10)\narray([11, 12])"),
      Binary<Subtract>("x - y. Integers wrap around.",
                       ">>> ps.subtract(np.array([1, 2]), 10)\n"
                       "array([-9, -8])"),
      Binary<Multiply>(
          "x * y. Integers wrap around; of two bools, logical and.",
          ">>> ps.multiply(np.array([1, 2]), 10)\n"
          "array([10, 20])"),
      Binary<TrueDivide>("x / y, as floats: two integers give float64.",
                         ">>> ps.true_divide(np.array([1, 2]), 2)\n"
                         "array([0.5, 1. ])"),
      Binary<FloorDivideOp>(
          "x // y, rounded down. An integer divided by zero gives 0.",
          ">>> ps.floor_divide(np.array([-7, 7]), 2)\narray([-4,  3])"),
      Binary<Mod>("x % y, with the sign of y. An integer modulo zero gives 0.",
                  ">>> ps.mod(np.array([-7, 7]), 2)\narray([1, 1])"),
      Binary<PowerOp>("x ** y. Integers wrap around; a negative integer power "
                      "of an integer is an error.",
                      ">>> ps.power(np.array([2, 3]), 2)\narray([4, 9])"),
      Binary<MinimumOp>("The smaller of x and y; NaN if either is.",
                        ">>> ps.minimum(np.array([1, 5]), 3)\narray([1, 3])"),
      Binary<MaximumOp>("The larger of x and y; NaN if either is.",
                        ">>> ps.maximum(np.array([1, 5]), 3)\narray([3, 5])"),
  };
  for (Function& function : functions) {
    if (function.name == Add::kName) {
      function.infer = InferAdd;
      function.eval = EvalAdd;
    }
    if (function.name == PowerOp::kName) {
      function.infer = InferPower;
      function.eval = EvalPower;
    }
  }
  Function divmod = Binary<FloorDivideOp>("x // y and x % y.", "");
  divmod.name = "divmod";
  divmod.infer_parts = InferDivMod;
  divmod.eval_parts = EvalDivMod;
  divmod.is_internal = true;  // divmod(x, y) is Python's
  functions.push_back(divmod);
  return functions;
}

}  // namespace penstock::functions
