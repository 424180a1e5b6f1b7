#include "penstock/engine/samples_testing.h"

#include "absl/strings/str_cat.h"
#include "penstock/engine/reader_testing.h"

namespace penstock::engine_testing {

using plan_testing::FunctionBuilder;

plan::Function FailsWhere(int64_t divisor, int64_t remainder) {
  FunctionBuilder f("fails");
  const auto x = f.Arg(0);
  const auto rest = f.Call("mod", {x, f.Int(divisor)});
  const auto is_bad = f.Call("equal", {rest, f.Int(remainder)});
  // An index into one number: 0, or one that is not there.
  const auto index = f.Call("multiply", {is_bad, f.Int(5)});
  const auto zero =
      f.Call("take", {f.Constant(plan_testing::Vector({0})), index});
  return f.Return(f.Call("add", {x, zero}));
}

plan::Function UpTo() {
  FunctionBuilder f("up_to");
  return f.Return(f.Call("arange", {f.Arg(0)}));
}

plan::Function RandomNumber() {
  FunctionBuilder f("random_number");
  plan::Attr seed;
  seed.set_integer(0);
  return f.Return(f.Call("random_int",
                         {f.Constant(plan_testing::Vector({})), f.Int(0),
                          f.Constant(plan_testing::Scalar(int64_t{1} << 40))},
                         {{"seed", seed}}));
}

std::string FailureText() {
  static const std::string* const text = new std::string(
      Drain(plan_testing::Map(plan_testing::Range(1), FailsWhere(1, 0)))[0]);
  return *text;
}

plan::Plan Words(int64_t count) {
  std::vector<std::string> words;
  for (int64_t i = 0; i < count; ++i) {
    std::string word;
    for (int64_t k = 0; k < i % 7; ++k) absl::StrAppend(&word, i);
    words.push_back(word);
  }
  return plan_testing::Strings(words);
}

std::vector<std::string> Numbers(int64_t begin, int64_t end, int64_t step) {
  std::vector<std::string> numbers;
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    numbers.push_back(absl::StrCat(i));
  }
  return numbers;
}

std::vector<std::string> Numbers(const std::vector<int64_t>& values) {
  std::vector<std::string> numbers;
  for (int64_t value : values) numbers.push_back(absl::StrCat(value));
  return numbers;
}

plan::Plan Unordered(plan::Plan plan) {
  plan::Node& node = *plan.mutable_nodes(plan.nodes_size() - 1);
  if (node.has_map()) node.mutable_map()->set_deterministic(false);
  if (node.has_interleave())
    node.mutable_interleave()->set_deterministic(false);
  return plan;
}

}  // namespace penstock::engine_testing
