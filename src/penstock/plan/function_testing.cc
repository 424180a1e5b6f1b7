#include "penstock/plan/function_testing.h"

#include "absl/types/span.h"

namespace penstock::plan_testing {
namespace {

template <typename T>
Tensor Number(plan::DType dtype, absl::Span<const T> values) {
  Tensor tensor;
  tensor.set_dtype(dtype);
  tensor.set_data(std::string(reinterpret_cast<const char*>(values.data()),
                              values.size() * sizeof(T)));
  return tensor;
}

Function OfConstant(const std::string& name, const std::string& call,
                    int64_t value) {
  FunctionBuilder f(name);
  const auto x = f.Arg(0);
  return f.Return(f.Call(call, {x, f.Int(value)}));
}

}  // namespace

Tensor Scalar(int64_t value) {
  return Number<int64_t>(plan::INT64, {&value, 1});
}
Tensor Scalar(double value) {
  return Number<double>(plan::FLOAT64, {&value, 1});
}
Tensor Scalar(bool value) {
  return Number<bool>(plan::BOOL, absl::MakeConstSpan(&value, 1));
}

Tensor Text(const std::string& value) {
  Tensor tensor;
  tensor.set_dtype(plan::STRING);
  tensor.add_strings(value);
  return tensor;
}

Tensor Texts(const std::vector<std::string>& values) {
  Tensor tensor;
  tensor.set_dtype(plan::STRING);
  tensor.add_shape(static_cast<int64_t>(values.size()));
  for (const std::string& value : values) tensor.add_strings(value);
  return tensor;
}

Tensor Vector(const std::vector<int64_t>& values) {
  Tensor tensor = Number<int64_t>(plan::INT64, values);
  tensor.add_shape(static_cast<int64_t>(values.size()));
  return tensor;
}

Value Constant(Tensor tensor) {
  Value value;
  *value.mutable_constant() = std::move(tensor);
  return value;
}

Value Bound(uint32_t number) {
  Value value;
  value.set_bound(number);
  return value;
}

plan::PartialShape ShapeOf(const Dims& dims) {
  plan::PartialShape shape;
  for (std::optional<int64_t> dim : dims) {
    plan::PartialShape::Dim* out = shape.add_dims();
    if (dim.has_value()) out->set_size(*dim);
  }
  return shape;
}

plan::TensorSpec LeafOf(plan::DType dtype, const Dims& dims) {
  plan::TensorSpec leaf;
  leaf.set_dtype(dtype);
  *leaf.mutable_shape() = ShapeOf(dims);
  return leaf;
}

ElementSpec TensorOf(plan::DType dtype, const Dims& dims) {
  ElementSpec spec;
  *spec.mutable_tensor() = LeafOf(dtype, dims);
  return spec;
}

ElementSpec TupleOf(const std::vector<ElementSpec>& items) {
  ElementSpec spec;
  *spec.mutable_tuple()->mutable_items() = {items.begin(), items.end()};
  return spec;
}

ElementSpec DictOf(
    const std::vector<std::pair<std::string, ElementSpec>>& items) {
  ElementSpec spec;
  spec.mutable_dict();
  for (const auto& [key, value] : items) {
    spec.mutable_dict()->add_keys(key);
    *spec.mutable_dict()->add_values() = value;
  }
  return spec;
}

FunctionBuilder::Step FunctionBuilder::Add(Function::Step step) {
  *function_.add_steps() = std::move(step);
  return function_.steps_size() - 1;
}

FunctionBuilder::Step FunctionBuilder::Arg(uint32_t component) {
  Function::Step step;
  step.set_argument(component);
  return Add(std::move(step));
}

FunctionBuilder::Step FunctionBuilder::BoundValue(uint32_t number) {
  Function::Step step;
  step.set_bound(number);
  return Add(std::move(step));
}

FunctionBuilder::Step FunctionBuilder::Int(int64_t value) {
  Function::Step step;
  *step.mutable_constant()->mutable_tensor() = Scalar(value);
  step.mutable_constant()->set_weak(true);
  return Add(std::move(step));
}

FunctionBuilder::Step FunctionBuilder::Constant(Tensor tensor) {
  Function::Step step;
  *step.mutable_constant()->mutable_tensor() = std::move(tensor);
  return Add(std::move(step));
}

FunctionBuilder::Step FunctionBuilder::Call(
    const std::string& function, std::vector<Step> args,
    std::map<std::string, plan::Attr> attrs) {
  Function::Step step;
  step.mutable_call()->set_function(function);
  for (Step arg : args) step.mutable_call()->add_args(arg);
  for (auto& [name, attr] : attrs) {
    (*step.mutable_call()->mutable_attrs())[name] = std::move(attr);
  }
  return Add(std::move(step));
}

Function FunctionBuilder::Return(Step step) {
  return Return(TensorOf(plan::INT64), {step});
}

Function FunctionBuilder::ReturnTuple(const std::vector<Step>& steps) {
  return Return(
      TupleOf(std::vector<ElementSpec>(steps.size(), TensorOf(plan::INT64))),
      steps);
}

Function FunctionBuilder::Return(ElementSpec structure,
                                 const std::vector<Step>& steps) {
  *function_.mutable_output() = std::move(structure);
  *function_.mutable_outputs() = {steps.begin(), steps.end()};
  return function_;
}

Function FunctionBuilder::ReturnDataset(Plan dataset,
                                        const std::vector<Step>& steps) {
  *function_.mutable_dataset() = std::move(dataset);
  *function_.mutable_outputs() = {steps.begin(), steps.end()};
  return function_;
}

Function Identity() {
  FunctionBuilder f("identity");
  return f.Return(f.Arg(0));
}

Function AddConstant(int64_t value) {
  return OfConstant("add_constant", "add", value);
}

Function MultiplyBy(int64_t value) {
  return OfConstant("multiply_by", "multiply", value);
}

Function Mod(int64_t divisor) { return OfConstant("mod", "mod", divisor); }

Function IsMultipleOf(int64_t divisor) {
  FunctionBuilder f("is_multiple_of");
  const auto x = f.Arg(0);
  const auto rest = f.Call("mod", {x, f.Int(divisor)});
  return f.Return(f.Call("equal", {rest, f.Int(0)}));
}

Function IsLessThan(int64_t limit) {
  return OfConstant("is_less_than", "less", limit);
}

Function Pair() {
  FunctionBuilder f("pair");
  const auto x = f.Arg(0);
  return f.ReturnTuple({x, x});
}

Function RunningSum() {
  FunctionBuilder f("running_sum");
  const auto sum = f.Call("add", {f.Arg(0), f.Arg(1)});
  return f.ReturnTuple({sum, sum});
}

Function Sum() {
  FunctionBuilder f("sum");
  return f.Return(f.Call("add", {f.Arg(0), f.Arg(1)}));
}

}  // namespace penstock::plan_testing
