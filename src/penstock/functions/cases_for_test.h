// For tests: a function's call as a row of a table, and arguments that many
// use.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/functions/call_for_test.h"

namespace penstock::functions {

using Ints = std::vector<int64_t>;

struct Case {
  std::string name;
  std::string function;
  std::vector<TestArg> args;
  Attrs attrs;
  std::string want;
};

class CaseTest : public testing::TestWithParam<Case> {};

inline std::string NameOf(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

inline TestArg Int(int64_t value) { return Weak<int64_t>(value); }

// A constant vector.
inline TestArg Vector(std::initializer_list<int64_t> values) {
  return Constant(
      Dense<int64_t>({static_cast<int64_t>(values.size())}, values));
}

// Two rows: [[0 1 2] [3 4 5]] and [[6 7 8] [9 10 11]].
inline TestArg Matrix() {
  return Dense<int64_t>({2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
}
inline TestArg Lists() { return Ragged<int64_t>({{1, 2, 3}, {}, {4, 5}}); }
inline TestArg Words() {
  TestArg words = Strings({"a", "bc", "", "d"});
  words.column = words.column.Reshape(2, {2});
  words.shape = PartialShape(PartialShape::Dims{2});
  return words;
}

inline Attrs Spec(std::string text) { return {{"spec", std::move(text)}}; }
inline Attrs At(int64_t axis) { return {{"axis", axis}}; }

}  // namespace penstock::functions
