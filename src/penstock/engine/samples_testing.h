// For tests: functions and plans that operators are tried with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {

// x -> x, but an error (OUT_OF_RANGE or the like) where x % divisor ==
// remainder.
plan::Function FailsWhere(int64_t divisor, int64_t remainder);
// x -> [0, 1, …, x - 1]
plan::Function UpTo();
// Any element -> a random int64 in [0, 2^40).
plan::Function RandomNumber();

// The code that FailsWhere fails with, as the reader writes it.
std::string FailureText();

// As many strings: "", "1", "22", "333", …
plan::Plan Words(int64_t count);

// "0", "1", …, as the reader writes numbers.
std::vector<std::string> Numbers(int64_t begin, int64_t end, int64_t step = 1);
std::vector<std::string> Numbers(const std::vector<int64_t>& values);

// The same with deterministic = false at the last node.
plan::Plan Unordered(plan::Plan plan);

}  // namespace penstock::engine_testing
