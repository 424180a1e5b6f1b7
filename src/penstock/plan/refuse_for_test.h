// A refusal as a row of a table.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "penstock/plan/plan_testing.h"

namespace penstock::plan_testing {

// A node that the builder must refuse. It has one bound value, float32(2,).
struct RefuseCase {
  std::string name;
  std::vector<Plan> inputs;
  std::function<void(Node&)> fill;
  std::string want;  // how the message begins
  bool is_type_error = false;
};

// Expects the refusal, and that it names the node and the user's line.
void ExpectRefused(const RefuseCase& c);

// One row of one int64, as scan and reduce start with.
plan::Rows OneInt();

}  // namespace penstock::plan_testing
