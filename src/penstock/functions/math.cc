#include <cmath>
#include <complex>

#include "penstock/base/status.h"
#include "penstock/functions/elementwise.h"
#include "penstock/functions/float_math.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/number.h"

namespace penstock::functions {
namespace {

template <typename T>
concept FloatOrComplex = Floating<T> || Complex<T>;

// Items that are computed as float32 are so by a loop of float_math.h.
template <void (*loop)(const float*, float*, int64_t)>
struct InVectors {
  static void Floats(const float* in, float* out, int64_t count) {
    loop(in, out, count);
  }
};

// A function of floats and complex numbers that the standard library has.
#define PENSTOCK_FLOAT_FUNCTION(Type, name, expression) \
  struct Type {                                         \
    static constexpr std::string_view kName = name;     \
    static constexpr Rule kRule = Rule::kFloating;      \
    template <FloatOrComplex T>                         \
    static T Do(T x) {                                  \
      return expression;                                \
    }                                                   \
  }

template <FloatOrComplex T>
T Log2(T x) {
  if constexpr (Complex<T>) {
    using R = typename T::value_type;
    return std::log(x) * static_cast<R>(M_LOG2E);
  } else {
    return std::log2(x);
  }
}
template <FloatOrComplex T>
T Log1p(T x) {
  if constexpr (Complex<T>) {
    using R = typename T::value_type;
    return T(std::log(std::hypot(x.real() + 1, x.imag())),
             std::atan2(x.imag(), x.real() + R{1}));
  } else {
    return std::log1p(x);
  }
}
template <FloatOrComplex T>
T Expm1(T x) {
  if constexpr (Complex<T>) {
    const auto half_sine = std::sin(x.imag() / 2);
    return T(
        std::expm1(x.real()) * std::cos(x.imag()) - 2 * half_sine * half_sine,
        std::exp(x.real()) * std::sin(x.imag()));
  } else {
    return std::expm1(x);
  }
}

PENSTOCK_FLOAT_FUNCTION(Sqrt, "sqrt", std::sqrt(x));
PENSTOCK_FLOAT_FUNCTION(Exp, "exp", std::exp(x));
PENSTOCK_FLOAT_FUNCTION(Log, "log", std::log(x));
PENSTOCK_FLOAT_FUNCTION(Log2Op : InVectors<Log2Floats>, "log2", Log2(x));
PENSTOCK_FLOAT_FUNCTION(Log10 : InVectors<Log10Floats>, "log10", std::log10(x));
PENSTOCK_FLOAT_FUNCTION(Log1pOp : InVectors<Log1pFloats>, "log1p", Log1p(x));
PENSTOCK_FLOAT_FUNCTION(Expm1Op : InVectors<Expm1Floats>, "expm1", Expm1(x));
PENSTOCK_FLOAT_FUNCTION(Sin : InVectors<SinFloats>, "sin", std::sin(x));
PENSTOCK_FLOAT_FUNCTION(Cos : InVectors<CosFloats>, "cos", std::cos(x));
PENSTOCK_FLOAT_FUNCTION(Tan, "tan", std::tan(x));
PENSTOCK_FLOAT_FUNCTION(Tanh : InVectors<TanhFloats>, "tanh", std::tanh(x));
PENSTOCK_FLOAT_FUNCTION(Arctan
                        : InVectors<ArctanFloats>, "arctan", std::atan(x));
#undef PENSTOCK_FLOAT_FUNCTION

// Rounding leaves integers and bools as they are.
#define PENSTOCK_ROUNDING(Type, name, rule, function) \
  struct Type {                                       \
    static constexpr std::string_view kName = name;   \
    static constexpr Rule kRule = rule;               \
    template <typename T>                             \
    requires(Bool<T> || Real<T>) static T Do(T x) {   \
      if constexpr (Floating<T>) return function(x);  \
      return x;                                       \
    }                                                 \
  }

PENSTOCK_ROUNDING(Floor, "floor", Rule::kRealOrBool, std::floor);
PENSTOCK_ROUNDING(Ceil, "ceil", Rule::kRealOrBool, std::ceil);
PENSTOCK_ROUNDING(Trunc, "trunc", Rule::kRealOrBool, std::trunc);
#undef PENSTOCK_ROUNDING

struct Round {
  static constexpr std::string_view kName = "round";
  static constexpr Rule kRule = Rule::kNumber;
  template <Number T>
  static T Do(T x) {
    if constexpr (Complex<T>) {
      return T(std::nearbyint(x.real()), std::nearbyint(x.imag()));
    } else if constexpr (Floating<T>) {
      return std::nearbyint(x);
    } else {
      return x;
    }
  }
};

struct Negative {
  static constexpr std::string_view kName = "negative";
  static constexpr Rule kRule = Rule::kNotBool;
  template <Number T>
  requires(!Bool<T>) static T Do(T x) {
    if constexpr (Integer<T>) {
      return WrapSubtract(T{0}, x);
    } else {
      return -x;
    }
  }
};

struct Positive {
  static constexpr std::string_view kName = "positive";
  static constexpr Rule kRule = Rule::kNotBool;
  template <Number T>
  requires(!Bool<T>) static T Do(T x) { return x; }
};

struct Sign {
  static constexpr std::string_view kName = "sign";
  static constexpr Rule kRule = Rule::kNotBool;
  template <Number T>
  requires(!Bool<T>) static T Do(T x) {
    if constexpr (Complex<T>) {
      if (x == T{}) return T{};
      const auto size = std::abs(x);
      if (!std::isfinite(size)) {
        // One infinite part is a direction; two are none.
        const bool real = std::isinf(x.real());
        const bool imag = std::isinf(x.imag());
        if (real != imag && !IsNan(x)) {
          return T(real ? std::copysign(1, x.real()) : 0,
                   imag ? std::copysign(1, x.imag()) : 0);
        }
        return T(NAN, NAN);
      }
      return T(x.real() / size, x.imag() / size);
    } else if constexpr (Floating<T>) {
      return x > 0 ? T{1} : x < 0 ? T{-1} : x == 0 ? T{0} : x;
    } else {
      return static_cast<T>((x > 0) - (x < T{0}));
    }
  }
};

struct Square {
  static constexpr std::string_view kName = "square";
  static constexpr Rule kRule = Rule::kBoolAsInt8;
  template <Number T>
  requires(!Bool<T>) static T Do(T x) {
    if constexpr (Integer<T>) {
      return WrapMultiply(x, x);
    } else if constexpr (Complex<T>) {
      return Times(x, x);
    } else {
      return x * x;
    }
  }
};

struct Reciprocal {
  static constexpr std::string_view kName = "reciprocal";
  static constexpr Rule kRule = Rule::kBoolAsInt8;
  template <Number T>
  requires(!Bool<T>) static T Do(T x) {
    if constexpr (Integer<T>) {
      return static_cast<T>(1.0 / static_cast<double>(x));
    } else if constexpr (Complex<T>) {
      return Divided(T(1), x);
    } else {
      return T{1} / x;
    }
  }
};

struct Abs {
  static constexpr std::string_view kName = "abs";
  template <Number T>
  static auto Do(T x) {
    if constexpr (Bool<T> || std::is_unsigned_v<T>) {
      return x;
    } else if constexpr (Integer<T>) {
      return x < 0 ? WrapSubtract(T{0}, x) : x;
    } else {
      return std::abs(x);
    }
  }
};

DType AbsDType(DType dtype) {
  if (dtype == DType::kComplex64) return DType::kFloat32;
  if (dtype == DType::kComplex128) return DType::kFloat64;
  return dtype;
}

absl::StatusOr<TensorSpec> InferAbs(absl::Span<const ArgSpec> args,
                                    const Attrs&) {
  PENSTOCK_ASSIGN_OR_RETURN(TensorSpec result,
                            InferPromoted("abs", Rule::kNumber, args));
  result.dtype = AbsDType(result.dtype);
  return result;
}

absl::StatusOr<Column> EvalAbs(absl::Span<const Arg> args, const Attrs&,
                               const TensorSpec& result, EvalContext& context) {
  const DType dtype = args[0].column->dtype();
  Loop loop;
  if (dtype == DType::kComplex64) {
    loop = &UnaryLoop<Abs, std::complex<float>, float>;
  } else if (dtype == DType::kComplex128) {
    loop = &UnaryLoop<Abs, std::complex<double>, double>;
  } else {
    loop = VisitDType(dtype, [](auto item) -> Loop {
      using T = decltype(item);
      if constexpr (Number<ComputeType<T>> && !Complex<T>) {
        return &UnaryLoop<Abs, T, T>;
      } else {
        return nullptr;
      }
    });
  }
  return RunElementwise(args, &dtype, result.dtype, loop, context);
}

// Questions about floats; of other numbers the answer is known.
struct IsNanOp {
  static constexpr std::string_view kName = "isnan";
  template <Number T>
  static bool Do(T x) {
    return IsNan(x);
  }
};
struct IsInf {
  static constexpr std::string_view kName = "isinf";
  template <Number T>
  static bool Do(T x) {
    if constexpr (Complex<T>) {
      return std::isinf(x.real()) || std::isinf(x.imag());
    } else if constexpr (Floating<T>) {
      return std::isinf(x);
    } else {
      return false;
    }
  }
};
struct IsFinite {
  static constexpr std::string_view kName = "isfinite";
  template <Number T>
  static bool Do(T x) {
    return !IsNan(x) && !IsInf::Do(x);
  }
};

template <typename Op>
absl::StatusOr<TensorSpec> InferQuestion(absl::Span<const ArgSpec> args,
                                         const Attrs&) {
  PENSTOCK_ASSIGN_OR_RETURN(TensorSpec result,
                            InferPromoted(Op::kName, Rule::kNumber, args));
  result.dtype = DType::kBool;
  return result;
}

template <typename Op>
absl::StatusOr<Column> EvalQuestion(absl::Span<const Arg> args, const Attrs&,
                                    const TensorSpec&, EvalContext& context) {
  const DType dtype = args[0].column->dtype();
  return RunElementwise(args, &dtype, DType::kBool, BoolUnaryLoop<Op>(dtype),
                        context);
}

// As numpy: round() of a bool is a float16; floor() of one is a bool.
absl::StatusOr<TensorSpec> InferRound(absl::Span<const ArgSpec> args,
                                      const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(TensorSpec result,
                            InferSameType<Round>(args, attrs));
  if (result.dtype == DType::kBool) result.dtype = DType::kFloat16;
  return result;
}

template <typename Op>
Function Unary(std::string_view doc, std::string_view example) {
  return {.name = Op::kName,
          .params = {{"x", ParamKind::kTensor, "", "The values."}},
          .doc = doc,
          .example = example,
          .infer = InferSameType<Op>,
          .eval = EvalSameType<Op>};
}

template <typename Op>
Function Question(std::string_view doc, std::string_view example) {
  return {.name = Op::kName,
          .params = {{"x", ParamKind::kTensor, "", "The values."}},
          .doc = doc,
          .example = example,
          .infer = InferQuestion<Op>,
          .eval = EvalQuestion<Op>};
}

}  // namespace

std::vector<Function> MathFunctions() {
  std::vector<Function> functions = {
      Unary<Sqrt>("The square root; NaN of negative numbers.",
                  ">>> ps.sqrt(np.array([4, 9]))\narray([2., 3.])"),
      Unary<Exp>("e to the power x.",
                 ">>> ps.exp(np.array([0.0, -np.inf]))\narray([1., 0.])"),
      Unary<Log>("The natural logarithm.",
                 ">>> ps.log(np.array([1.0, np.inf]))\narray([ 0., inf])"),
      Unary<Log2Op>("The logarithm to base 2.",
                    ">>> ps.log2(np.array([1, 8]))\narray([0., 3.])"),
      Unary<Log10>("The logarithm to base 10.",
                   ">>> ps.log10(np.array([1, 100]))\narray([0., 2.])"),
      Unary<Log1pOp>("log(1 + x), exact for small x.",
                     ">>> ps.log1p(np.array([0.0, 1e-20]))\n"
                     "array([0.e+00, 1.e-20])"),
      Unary<Expm1Op>("exp(x) - 1, exact for small x.",
                     ">>> ps.expm1(np.array([0.0, 1e-20]))\n"
                     "array([0.e+00, 1.e-20])"),
      Unary<Sin>("The sine of an angle in radians.",
                 ">>> ps.sin(np.array([0.0]))\narray([0.])"),
      Unary<Cos>("The cosine of an angle in radians.",
                 ">>> ps.cos(np.array([0.0]))\narray([1.])"),
      Unary<Tan>("The tangent of an angle in radians.",
                 ">>> ps.tan(np.array([0.0]))\narray([0.])"),
      Unary<Tanh>("The hyperbolic tangent.",
                  ">>> ps.tanh(np.array([0.0, np.inf]))\narray([0., 1.])"),
      Unary<Arctan>("The angle in radians whose tangent is x.",
                    ">>> ps.arctan(np.array([0.0]))\narray([0.])"),
      Unary<Floor>("The largest integer not above x; integers stay.",
                   ">>> ps.floor(np.array([-1.5, 1.5]))\narray([-2.,  1.])"),
      Unary<Ceil>("The smallest integer not below x; integers stay.",
                  ">>> ps.ceil(np.array([-1.5, 1.5]))\narray([-1.,  2.])"),
      Unary<Trunc>("x without its fraction; integers stay.",
                   ">>> ps.trunc(np.array([-1.5, 1.5]))\narray([-1.,  1.])"),
      Unary<Round>("The nearest integer, halves to the even one.",
                   ">>> ps.round(np.array([0.5, 1.5]))\narray([0., 2.])"),
      Unary<Negative>("-x. Integers wrap around.",
                      ">>> ps.negative(np.array([1, -2]))\narray([-1,  2])"),
      Unary<Positive>("+x.",
                      ">>> ps.positive(np.array([1, -2]))\narray([ 1, -2])"),
      Unary<Sign>("-1, 0 or 1; x / |x| of complex numbers.",
                  ">>> ps.sign(np.array([5, 0, -5]))\narray([ 1,  0, -1])"),
      Unary<Square>("x * x. Integers wrap around.",
                    ">>> ps.square(np.array([2, -3]))\narray([4, 9])"),
      Unary<Reciprocal>("1 / x in x's dtype: of integers, mostly 0.",
                        ">>> ps.reciprocal(np.array([2.0, 4.0]))\n"
                        "array([0.5 , 0.25])"),
      Question<IsNanOp>("Whether x is NaN.",
                        ">>> ps.isnan(np.array([1.0, np.nan]))\n"
                        "array([False,  True])"),
      Question<IsInf>("Whether x is infinite.",
                      ">>> ps.isinf(np.array([1.0, -np.inf]))\n"
                      "array([False,  True])"),
      Question<IsFinite>("Whether x is neither NaN nor infinite.",
                         ">>> ps.isfinite(np.array([1.0, np.nan]))\n"
                         "array([ True, False])"),
  };
  for (Function& function : functions) {
    if (function.name == Round::kName) function.infer = InferRound;
  }
  functions.push_back(
      {.name = Abs::kName,
       .params = {{"x", ParamKind::kTensor, "", "The values."}},
       .doc = "The absolute value; of complex numbers a float.",
       .example = ">>> ps.abs(np.array([1, -2]))\narray([1, 2])",
       .infer = InferAbs,
       .eval = EvalAbs});
  return functions;
}

}  // namespace penstock::functions
