// A small language for tests: constants, specs and functions in one line each.
//
//   FunctionBuilder f;
//   auto x = f.Arg(0);
//   Function square = f.Return(f.Call("multiply", {x, x}));
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/plan.pb.h"

namespace penstock::plan_testing {

using plan::ElementSpec;
using plan::Function;
using plan::Plan;
using plan::Tensor;
using plan::Value;

// Constants and parameters.
Tensor Scalar(int64_t value);  // int64
Tensor Scalar(double value);   // float64
Tensor Scalar(bool value);
Tensor Text(const std::string& value);
Tensor Texts(const std::vector<std::string>& values);
Tensor Vector(const std::vector<int64_t>& values);
Value Constant(Tensor tensor);
inline Value Constant(int64_t value) { return Constant(Scalar(value)); }
Value Bound(uint32_t number);

// Specs: TensorOf(INT64, {2, std::nullopt}) is int64(2, None).
using Dims = std::vector<std::optional<int64_t>>;
plan::TensorSpec LeafOf(plan::DType dtype, const Dims& dims = {});
plan::PartialShape ShapeOf(const Dims& dims);
ElementSpec TensorOf(plan::DType dtype, const Dims& dims = {});
ElementSpec TupleOf(const std::vector<ElementSpec>& items);
// REQUIRES: keys in ascending order.
ElementSpec DictOf(
    const std::vector<std::pair<std::string, ElementSpec>>& items);

// Makes a function step by step; a Return makes the function.
class FunctionBuilder final {
 public:
  using Step = uint32_t;

  explicit FunctionBuilder(std::string name = "f") {
    function_.set_name(std::move(name));
  }

  Step Arg(uint32_t component);
  Step BoundValue(uint32_t number);
  Step Int(int64_t value);  // a Python int: takes the dtype of what it meets
  Step Constant(Tensor tensor);
  Step Call(const std::string& function, std::vector<Step> args,
            std::map<std::string, plan::Attr> attrs = {});

  Function Return(Step step);
  Function ReturnTuple(const std::vector<Step>& steps);
  // `structure` has one tensor per step; their specs are not looked at.
  Function Return(ElementSpec structure, const std::vector<Step>& steps);
  // A dataset whose bound values are `steps`.
  Function ReturnDataset(Plan dataset, const std::vector<Step>& steps);

 private:
  Step Add(Function::Step step);

  Function function_;
};

// Functions of one number.
Function Identity();
Function AddConstant(int64_t value);
Function MultiplyBy(int64_t value);
Function Mod(int64_t divisor);
Function IsMultipleOf(int64_t divisor);  // predicate: x % divisor == 0
Function IsLessThan(int64_t limit);      // predicate
Function Pair();                         // x -> (x, x)
// Functions of a state and a number.
Function RunningSum();  // for scan: (s, x) -> (s + x, s + x)
Function Sum();         // for reduce: (s, x) -> s + x

}  // namespace penstock::plan_testing
