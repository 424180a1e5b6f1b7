#include "penstock/plan/rewrite/function_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/functions/function.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::plan_testing {
namespace {

constexpr int64_t kRows = 6;

// Values at which things go wrong.
template <typename T>
std::vector<T> Extremes() {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::has_quiet_NaN) {
    return {T(0),
            T(-1),
            Limits::max(),
            Limits::infinity(),
            Limits::quiet_NaN(),
            Limits::lowest()};
  } else {
    return {T(0), T(1), Limits::max(), Limits::lowest(), T(2), T(63)};
  }
}

template <typename T>
Column ColumnOf(DType dtype, const Shape& shape) {
  const std::vector<T> values = Extremes<T>();
  const int64_t count = kRows * NumItems(shape);
  Buffer buffer = Buffer::Allocate(count * sizeof(T));
  for (int64_t i = 0; i < count; ++i) {
    buffer.MutableAs<T>()[i] = values[(i * 5 + i / 7) % values.size()];
  }
  return Column::Dense(dtype, shape, kRows, std::move(buffer));
}

Column ColumnOf(DType dtype, const Shape& shape) {
  switch (dtype) {
    case DType::kUint8:
      return ColumnOf<uint8_t>(dtype, shape);
    case DType::kInt32:
      return ColumnOf<int32_t>(dtype, shape);
    case DType::kFloat32:
      return ColumnOf<float>(dtype, shape);
    case DType::kFloat64:
      return ColumnOf<double>(dtype, shape);
    default:
      return ColumnOf<int64_t>(DType::kInt64, shape);
  }
}

// What is said never to fail does not, whatever it is given.
TEST(FunctionFacts, WhatCannotFailDoesNot) {
  int tried = 0;
  const std::vector<DType> dtypes = {DType::kUint8, DType::kInt32,
                                     DType::kInt64, DType::kFloat32,
                                     DType::kFloat64};
  const std::vector<Shape> shapes = {Shape{}, Shape{3}, Shape{2, 3}};
  plan::Attr to;
  to.set_dtype(plan::INT32);
  for (const functions::Function& function : functions::AllFunctions()) {
    for (uint32_t args = 1; args <= 3; ++args) {
      for (size_t kind = 0; kind < dtypes.size() * shapes.size(); ++kind) {
        FunctionBuilder f;
        std::vector<Column> columns;
        std::vector<TensorSpec> specs;
        std::vector<FunctionBuilder::Step> steps;
        for (uint32_t i = 0; i < args; ++i) {
          const DType dtype = dtypes[(kind + i * (kind % 2)) % dtypes.size()];
          const Shape& shape = i == 0 || kind % 3 == 0
                                   ? shapes[kind / dtypes.size()]
                                   : shapes[0];
          columns.push_back(ColumnOf(dtype, shape));
          specs.push_back({dtype, PartialShape(absl::MakeConstSpan(shape))});
          steps.push_back(f.Arg(i));
        }
        std::map<std::string, plan::Attr> attrs;
        if (function.name == "cast") attrs["dtype"] = to;
        const Function made =
            f.Return(f.Call(std::string(function.name), steps, attrs));
        const auto facts = plan::FindStepFacts(made, specs, {});
        if (!facts.ok() || facts->back().may_fail) continue;
        ++tried;
        const auto program = plan::MakeProgram(made, specs, {});
        ASSERT_TRUE(program.ok());
        std::vector<RowError> errors;
        functions::EvalContext context;
        context.rows = kRows;
        context.errors = &errors;
        const auto result = program->Run(columns, {}, context);
        EXPECT_TRUE(result.ok()) << function.name << ": " << result.status();
        EXPECT_TRUE(errors.empty())
            << function.name << ": " << errors.front().status;
      }
    }
  }
  EXPECT_GT(tried, 500);
}

struct Case {
  std::string name;
  std::string function;
  Dims x, y;
  bool may_fail;
};

class FactsTest : public testing::TestWithParam<Case> {};

TEST_P(FactsTest, KnowsWhatMayFail) {
  const Case& c = GetParam();
  FunctionBuilder f;
  const Function made = f.Return(f.Call(c.function, {f.Arg(0), f.Arg(1)}));
  const auto x = plan::FromProto(LeafOf(plan::INT64, c.x));
  const auto y = plan::FromProto(LeafOf(plan::INT64, c.y));
  EXPECT_EQ(plan::MayFail(made, {*x, *y}, {}), c.may_fail);
}

INSTANTIATE_TEST_SUITE_P(
    Functions, FactsTest,
    testing::ValuesIn<Case>({
        {"Scalars", "add", {}, {}, false},
        {"KnownShapes", "add", {2, 3}, {3}, false},
        {"OneUnknown", "add", {std::nullopt}, {}, false},
        {"UnknownAndKnown", "add", {std::nullopt}, {3}, true},
        {"TwoUnknown", "add", {std::nullopt}, {std::nullopt}, true},
        {"IntegerPower", "power", {}, {}, true},
        {"Index", "take", {3}, {}, true},
        {"NoSuchFunction", "no_such", {}, {}, true},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::plan_testing
