#include "penstock/functions/elementwise.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/number.h"

namespace penstock::functions {
namespace {

template <typename T>
concept Bits = std::integral<T>;

struct And {
  static constexpr std::string_view kName = "bitwise_and";
  static constexpr Rule kRule = Rule::kBits;
  template <Bits T>
  static T Do(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct Or {
  static constexpr std::string_view kName = "bitwise_or";
  static constexpr Rule kRule = Rule::kBits;
  template <Bits T>
  static T Do(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct Xor {
  static constexpr std::string_view kName = "bitwise_xor";
  static constexpr Rule kRule = Rule::kBits;
  template <Bits T>
  static T Do(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

struct Invert {
  static constexpr std::string_view kName = "invert";
  static constexpr Rule kRule = Rule::kBits;
  template <Bits T>
  static T Do(T x) {
    if constexpr (Bool<T>) {
      return !x;
    } else {
      return static_cast<T>(~x);
    }
  }
};

// A count that is negative or as large as the type shifts everything out.
template <Integer T>
bool IsWithin(T count) {
  return static_cast<std::make_unsigned_t<T>>(count) < sizeof(T) * 8;
}

struct LeftShift {
  static constexpr std::string_view kName = "left_shift";
  static constexpr Rule kRule = Rule::kShift;
  template <Integer T>
  static T Do(T a, T b) {
    if (!IsWithin(b)) return 0;
    return static_cast<T>(static_cast<Wrapping<T>>(a) << b);
  }
};

struct RightShift {
  static constexpr std::string_view kName = "right_shift";
  static constexpr Rule kRule = Rule::kShift;
  template <Integer T>
  static T Do(T a, T b) {
    if (IsWithin(b)) return static_cast<T>(a >> b);
    if constexpr (std::is_signed_v<T>) {
      if (a < 0) return -1;
    }
    return 0;
  }
};

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

std::vector<Function> BitFunctions() {
  return {
      Binary<And>("x & y, of integers or bools.",
                  ">>> ps.bitwise_and(np.array([5, 6]), 3)\narray([1, 2])"),
      Binary<Or>("x | y, of integers or bools.",
                 ">>> ps.bitwise_or(np.array([5, 6]), 3)\narray([7, 7])"),
      Binary<Xor>("x ^ y, of integers or bools.",
                  ">>> ps.bitwise_xor(np.array([5, 6]), 3)\narray([6, 5])"),
      Binary<LeftShift>("x << y; 0 if y is negative or all bits leave.",
                        ">>> ps.left_shift(np.array([1, 2]), 3)\n"
                        "array([ 8, 16])"),
      Binary<RightShift>("x >> y, keeping the sign.",
                         ">>> ps.right_shift(np.array([-8, 8]), 2)\n"
                         "array([-2,  2])"),
      {.name = Invert::kName,
       .params = {{"x", ParamKind::kTensor, "", "Integers or bools."}},
       .doc = "~x: every bit turned; logical not of bools.",
       .example = ">>> ps.invert(np.array([0, 5]))\narray([-1, -6])",
       .infer = InferSameType<Invert>,
       .eval = EvalSameType<Invert>},
  };
}

}  // namespace penstock::functions
