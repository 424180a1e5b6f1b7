#include <utility>

#include "penstock/base/status.h"
#include "penstock/functions/elementwise.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/number.h"

namespace penstock::functions {
namespace {

// Compare<kind>: a and b of one type, or an int64 with a uint64, whose values
// are compared exactly.
enum class Order {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual
};

template <Order kOrder>
struct Compare {
  template <typename T>
  requires(Number<T> || std::same_as<T, StringRef>) static bool Do(T a, T b) {
    if constexpr (std::same_as<T, StringRef>) {
      return Of(a.view(), b.view());
    } else if constexpr (Complex<T>) {
      if constexpr (kOrder == Order::kEqual) return a == b;
      if constexpr (kOrder == Order::kNotEqual) return a != b;
      if constexpr (kOrder == Order::kLess) return Before(a, b);
      if constexpr (kOrder == Order::kGreater) return Before(b, a);
      if constexpr (kOrder == Order::kLessEqual) {
        return Before(a, b) || a == b;
      }
      return Before(b, a) || a == b;
    } else {
      return Of(a, b);
    }
  }
  template <Integer A, Integer B>
  requires(!std::same_as<A, B>) static bool Do(A a, B b) {
    if constexpr (kOrder == Order::kEqual) return std::cmp_equal(a, b);
    if constexpr (kOrder == Order::kNotEqual) return std::cmp_not_equal(a, b);
    if constexpr (kOrder == Order::kLess) return std::cmp_less(a, b);
    if constexpr (kOrder == Order::kLessEqual) return std::cmp_less_equal(a, b);
    if constexpr (kOrder == Order::kGreater) return std::cmp_greater(a, b);
    return std::cmp_greater_equal(a, b);
  }

 private:
  template <typename T>
  static bool Before(T a, T b) {
    return !IsNan(a) && !IsNan(b) && Less(a, b);
  }
  template <typename T>
  static bool Of(T a, T b) {
    if constexpr (kOrder == Order::kEqual) return a == b;
    if constexpr (kOrder == Order::kNotEqual) return a != b;
    if constexpr (kOrder == Order::kLess) return a < b;
    if constexpr (kOrder == Order::kLessEqual) return a <= b;
    if constexpr (kOrder == Order::kGreater) return a > b;
    return a >= b;
  }
};

// A Python integer outside the other's dtype is compared by its value: it then
// counts as the int64 or uint64 that it is.
bool IsOutside(const Arg& weak, DType other) {
  if (!weak.is_weak || !IsInteger(weak.column->dtype()) || !IsInteger(other)) {
    return false;
  }
  ArgSpec spec{{weak.column->dtype(), {}}, true, weak.column};
  return !CheckFits(spec, other).ok();
}

struct CompareDTypes {
  DType a;
  DType b;
};

std::optional<CompareDTypes> DTypesFor(absl::Span<const Arg> args) {
  Arg a = args[0];
  Arg b = args[1];
  if (IsOutside(a, b.column->dtype())) a.is_weak = false;
  if (IsOutside(b, a.column->dtype())) b.is_weak = false;
  const DType da = a.column->dtype();
  const DType db = b.column->dtype();
  if (!a.is_weak && !b.is_weak && IsInteger(da) && IsInteger(db) &&
      IsUnsigned(da) != IsUnsigned(db) &&
      (da == DType::kUint64 || db == DType::kUint64)) {
    return CompareDTypes{IsUnsigned(da) ? DType::kUint64 : DType::kInt64,
                         IsUnsigned(db) ? DType::kUint64 : DType::kInt64};
  }
  const Arg both[] = {a, b};
  const std::optional<DType> promoted = Promote(both);
  if (!promoted) return std::nullopt;
  return CompareDTypes{*promoted, *promoted};
}

template <Order kOrder>
absl::StatusOr<TensorSpec> InferCompare(absl::Span<const ArgSpec> args,
                                        const Attrs&) {
  if (!Promote(args)) return PromoteOrError("a comparison", args).status();
  TensorSpec result;
  result.dtype = DType::kBool;
  PENSTOCK_ASSIGN_OR_RETURN(result.shape, BroadcastShape(args));
  return result;
}

template <Order kOrder>
absl::StatusOr<Column> EvalCompare(absl::Span<const Arg> args, const Attrs&,
                                   const TensorSpec& result,
                                   EvalContext& context) {
  const std::optional<CompareDTypes> dtypes = DTypesFor(args);
  if (!dtypes) return absl::InternalError("dtypes that cannot be compared");
  const DType compute[] = {dtypes->a, dtypes->b};
  using Op = Compare<kOrder>;
  Loop loop;
  if (dtypes->a == dtypes->b) {
    loop = BoolBinaryLoop<Op>(dtypes->a);
  } else if (dtypes->a == DType::kUint64) {
    loop = &BinaryLoop<Op, uint64_t, int64_t, bool>;
  } else {
    loop = &BinaryLoop<Op, int64_t, uint64_t, bool>;
  }
  return RunElementwise(args, compute, DType::kBool, loop, context);
}

struct LogicalAnd {
  static constexpr std::string_view kName = "logical_and";
  static bool Do(bool a, bool b) { return a & b; }
};
struct LogicalOr {
  static constexpr std::string_view kName = "logical_or";
  static bool Do(bool a, bool b) { return a | b; }
};
struct LogicalXor {
  static constexpr std::string_view kName = "logical_xor";
  static bool Do(bool a, bool b) { return a != b; }
};
struct LogicalNot {
  static constexpr std::string_view kName = "logical_not";
  static bool Do(bool a) { return !a; }
};

// Each argument is cast to bool: whether it is nonzero.
template <typename Op>
absl::StatusOr<TensorSpec> InferLogical(absl::Span<const ArgSpec> args,
                                        const Attrs&) {
  TensorSpec result;
  result.dtype = DType::kBool;
  for (const ArgSpec& arg : args) {
    PENSTOCK_RETURN_IF_ERROR(
        ComputeDTypeOrError(Op::kName, Rule::kNumber, arg.spec.dtype).status());
  }
  PENSTOCK_ASSIGN_OR_RETURN(result.shape, BroadcastShape(args));
  return result;
}

template <typename Op>
absl::StatusOr<Column> EvalLogical(absl::Span<const Arg> args, const Attrs&,
                                   const TensorSpec& result,
                                   EvalContext& context) {
  constexpr DType kCompute[] = {DType::kBool, DType::kBool};
  Loop loop;
  if constexpr (requires { Op::Do(true, true); }) {
    loop = &BinaryLoop<Op, bool, bool, bool>;
  } else {
    loop = &UnaryLoop<Op, bool, bool>;
  }
  return RunElementwise(args, kCompute, DType::kBool, loop, context);
}

const std::vector<Param>& TwoOperands() {
  static const auto* const params =
      new std::vector<Param>{{"x", ParamKind::kTensor, "", "First operand."},
                             {"y", ParamKind::kTensor, "", "Second operand."}};
  return *params;
}

template <Order kOrder>
Function Comparison(std::string_view name, std::string_view doc,
                    std::string_view example) {
  return {.name = name,
          .params = TwoOperands(),
          .doc = doc,
          .example = example,
          .infer = InferCompare<kOrder>,
          .eval = EvalCompare<kOrder>};
}

template <typename Op>
Function Logical(std::string_view doc, std::string_view example) {
  return {.name = Op::kName,
          .params = TwoOperands(),
          .doc = doc,
          .example = example,
          .infer = InferLogical<Op>,
          .eval = EvalLogical<Op>};
}

}  // namespace

std::vector<Function> CompareFunctions() {
  std::vector<Function> functions = {
      Comparison<Order::kEqual>(
          "equal", "x == y. Strings are compared by their bytes.",
          ">>> ps.equal(np.array([1, 2]), 2)\narray([False,  True])"),
      Comparison<Order::kNotEqual>(
          "not_equal", "x != y. Strings are compared by their bytes.",
          ">>> ps.not_equal(np.array([1, 2]), 2)\narray([ True, False])"),
      Comparison<Order::kLess>(
          "less", "x < y; false if either is NaN.",
          ">>> ps.less(np.array([1, 2]), 2)\narray([ True, False])"),
      Comparison<Order::kLessEqual>(
          "less_equal", "x <= y; false if either is NaN.",
          ">>> ps.less_equal(np.array([1, 2, 3]), 2)\n"
          "array([ True,  True, False])"),
      Comparison<Order::kGreater>("greater", "x > y; false if either is NaN.",
                                  ">>> ps.greater(np.array([1, 2, 3]), 2)\n"
                                  "array([False, False,  True])"),
      Comparison<Order::kGreaterEqual>(
          "greater_equal", "x >= y; false if either is NaN.",
          ">>> ps.greater_equal(np.array([1, 2, 3]), 2)\n"
          "array([False,  True,  True])"),
      Logical<LogicalAnd>("Whether both x and y are nonzero.",
                          ">>> ps.logical_and(np.array([0, 1]), True)\n"
                          "array([False,  True])"),
      Logical<LogicalOr>("Whether x or y is nonzero.",
                         ">>> ps.logical_or(np.array([0, 1]), False)\n"
                         "array([False,  True])"),
      Logical<LogicalXor>("Whether exactly one of x and y is nonzero.",
                          ">>> ps.logical_xor(np.array([0, 1]), True)\n"
                          "array([ True, False])"),
  };
  functions.push_back(
      {.name = LogicalNot::kName,
       .params = {{"x", ParamKind::kTensor, "", "What to look at."}},
       .doc = "Whether x is zero.",
       .example = ">>> ps.logical_not(np.array([0, 1]))\n"
                  "array([ True, False])",
       .infer = InferLogical<LogicalNot>,
       .eval = EvalLogical<LogicalNot>});
  return functions;
}

}  // namespace penstock::functions
