// How tests look at plans that were rewritten.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "penstock/plan.pb.h"
#include "penstock/plan/print.h"

namespace penstock::plan_testing {

// The operators from the source to the root, with the names that they have.
inline std::string Chain(const plan::Plan& plan) {
  std::vector<std::string> names;
  for (int i = 0; i < plan.nodes_size(); ++i) {
    names.push_back(plan::NodeName(plan, i));
  }
  return absl::StrJoin(names, " ");
}

}  // namespace penstock::plan_testing
