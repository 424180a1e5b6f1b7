#include <limits>

#include "gtest/gtest.h"
#include "penstock/functions/call_for_test.h"

namespace penstock::functions {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

struct Case {
  std::string name;
  std::string function;
  std::vector<TestArg> args;
  std::string want;
};

class ArithmeticTest : public testing::TestWithParam<Case> {};

TEST_P(ArithmeticTest, Gives) {
  const Case& c = GetParam();
  EXPECT_EQ(Got(c.function, c.args), c.want);
}

INSTANTIATE_TEST_SUITE_P(
    Values, ArithmeticTest,
    testing::ValuesIn<Case>({
        {"Add",
         "add",
         {Rows<int64_t>({1, 2}), Weak<int64_t>(1)},
         "int64: 2; 3"},
        {"AddWraps",
         "add",
         {Rows<int64_t>({kMax}), Weak<int64_t>(1)},
         "int64: -9223372036854775808"},
        {"AddWrapsInUint8",
         "add",
         {Rows<uint8_t>({200}), Rows<uint8_t>({100})},
         "uint8: 44"},
        {"WeakTakesTheDtype",
         "add",
         {Rows<uint8_t>({1}), Weak<int64_t>(255)},
         "uint8: 0"},
        {"WeakMustFit",
         "add",
         {Rows<uint8_t>({1}), Weak<int64_t>(300)},
         "Python integer 300 out of bounds for uint8"},
        {"WeakFloat",
         "add",
         {Rows<float>({1}), Weak<double>(0.1)},
         "float32: 1.1"},
        {"WeakFloatWithInt",
         "add",
         {Rows<int8_t>({1}), Weak<double>(0.5)},
         "float64: 1.5"},
        {"BoolOr",
         "add",
         {Rows<bool>({true, false}), Rows<bool>({true, false})},
         "bool: True; False"},
        {"BoolMinus",
         "subtract",
         {Rows<bool>({true}), Rows<bool>({true})},
         "subtract is not defined for bool"},
        {"Strings",
         "subtract",
         {Strings({"a"}), Strings({"b"})},
         "subtract is not defined for string"},
        {"StringAndInt",
         "add",
         {Strings({"a"}), Weak<int64_t>(1)},
         "add needs dtypes that can be joined; got string and int64"},
        {"Broadcast",
         "add",
         {Dense<int64_t>({2, 1}, {1, 2, 3, 4}),
          Dense<int64_t>({3}, {10, 20, 30, 40, 50, 60})},
         "int64: [[11 21 31] [12 22 32]]; [[43 53 63] [44 54 64]]"},
        {"BroadcastScalarRows",
         "multiply",
         {Dense<int64_t>({2}, {1, 2, 3, 4}), Rows<int64_t>({10, 100})},
         "int64: [10 20]; [300 400]"},
        {"BroadcastUniform",
         "add",
         {Dense<int64_t>({2}, {1, 2, 3, 4}),
          Bound(Dense<int64_t>({2}, {10, 20}))},
         "int64: [11 22]; [13 24]"},
        {"AllUniform",
         "add",
         {Bound(Rows<int64_t>({1})), Weak<int64_t>(1)},
         "int64: 2"},
        {"BadShapes",
         "add",
         {Dense<int64_t>({2}, {1, 2}), Dense<int64_t>({3}, {1, 2, 3})},
         "operands could not be broadcast together: sizes must be equal or 1, "
         "from the last one on; got shapes (2,) and (3,)\n  Use expand_dims() "
         "or reshape() to line them up."},
        {"BadRanks",
         "add",
         {Dense<int64_t>({2, 1, 3}, {1, 2, 3, 4, 5, 6}),
          Dense<int64_t>({2}, {1, 2})},
         "operands could not be broadcast together: sizes must be equal or 1, "
         "from the last one on; got shapes (2, 1, 3) and (2,)\n  Use "
         "expand_dims() or reshape() to line them up."},
        {"Ragged",
         "add",
         {Ragged<int64_t>({{1, 2}, {}, {3}}), Weak<int64_t>(1)},
         "int64: [2 3]; []; [4]"},
        {"RaggedWithRows",
         "multiply",
         {Ragged<int64_t>({{1, 2}, {}, {3}}), Rows<int32_t>({2, 3, 4})},
         "int64: [2 4]; []; [12]"},
        {"RaggedBadRow",
         "add",
         {Ragged<int64_t>({{1, 2}, {1, 2, 3}}),
          Ragged<int64_t>({{1, 2}, {1, 2}})},
         "int64: [2 4]; <operands could not be broadcast together: sizes must "
         "be equal or 1, from the last one on; got shapes (3,) and (2,)\n  Use "
         "expand_dims() or reshape() to line them up.>"},
        {"FloorDivide",
         "floor_divide",
         {Rows<int64_t>({-7, 7, 7, kMin, 5}), Rows<int64_t>({2, -2, 2, -1, 0})},
         "int64: -4; -4; 3; -9223372036854775808; 0"},
        {"FloorDivideByFour",
         "floor_divide",
         {Rows<int8_t>({-7, 7}), Weak<int64_t>(4)},
         "int8: -2; 1"},
        {"FloorDivideFloat",
         "floor_divide",
         {Rows<double>({-7, 7, 1, -1, 0}), Rows<double>({2, -2, 0, 0, 0})},
         "float64: -4; -4; inf; -inf; nan"},
        {"Mod",
         "mod",
         {Rows<int64_t>({-7, 7, 7, kMin, 5}), Rows<int64_t>({2, -2, 2, -1, 0})},
         "int64: 1; -1; 1; 0; 0"},
        {"ModByEight",
         "mod",
         {Rows<int64_t>({-7, 7, 9}), Weak<int64_t>(8)},
         "int64: 1; 7; 1"},
        {"ModFloat",
         "mod",
         {Rows<double>({-7, 7, 5.5}), Rows<double>({3, -3, 2})},
         "float64: 2; -2; 1.5"},
        {"TrueDivide",
         "true_divide",
         {Rows<int8_t>({1, 1, 0}), Rows<int8_t>({2, 0, 0})},
         "float64: 0.5; inf; nan"},
        {"Power",
         "power",
         {Rows<int64_t>({2, 3, 0}), Rows<int64_t>({62, 2, 0})},
         "int64: 4611686018427387904; 9; 1"},
        {"PowerNegative",
         "power",
         {Rows<int64_t>({2, 3}), Rows<int64_t>({-1, 2})},
         "int64: <integers to negative integer powers are not allowed; cast to "
         "a float>; 9"},
        {"PowerNegativeConstant",
         "power",
         {Rows<int64_t>({2}), Weak<int64_t>(-1)},
         "integers to negative integer powers are not allowed; cast to a "
         "float"},
        {"PowerFloat",
         "power",
         {Rows<double>({2, 4}), Rows<double>({-1, 0.5})},
         "float64: 0.5; 2"},
        {"MinimumNan",
         "minimum",
         {Rows<double>({1, NAN, 1}), Rows<double>({NAN, 1, 2})},
         "float64: nan; nan; 1"},
        {"HalfRounds",
         "add",
         {Rows<Half>({Half(2048)}), Rows<Half>({Half(1)})},
         "float16: 2048"},
        {"ComplexTimes",
         "multiply",
         {Rows<std::complex<float>>({{1, 2}}),
          Rows<std::complex<float>>({{3, 4}})},
         "complex64: -5+10j"},
        {"NoRows", "add", {Rows<int64_t>({}), Weak<int64_t>(1)}, "int64:"},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::functions
