// The contract that every operator keeps, as one battery of checks.
//
//   TEST(TakeContract, Holds) { CheckContract(Take(Range(5), 3)); }
#pragma once

#include <cstdint>
#include <functional>

#include "penstock/engine/reader_testing.h"
#include "penstock/plan.pb.h"

namespace penstock::engine_testing {

struct ContractOptions {
  // Rows looked at: all of a finite plan unless it has more.
  int64_t max_rows = 60;
  // False: rows may come in any order, and only their multiset is compared.
  bool is_ordered = true;
  // Whether a second pass gives the rows of the first.
  bool repeats_itself = true;
  // No saved state is larger.
  size_t max_state_bytes = 1000;
  // For engines with files or sources of their own.
  TestEngine::Settings settings = {};
  std::function<void(TestEngine&)> set_up = [](TestEngine&) {};
};

// Checks, with EXPECTs that say what broke and where:
//
//   demand    the rows and their order do not depend on how many are asked for
//   end       after the end, only the end
//   counters  the root's rows and errors are those given
//   state     saved anywhere, restored in a fresh iterator (also twice over,
//   and
//             with rows skipped), the rest is the same; its size is bounded
//   repeat    repeat(2) gives the rows twice
//   iterators two of one pipeline, read in turn, do not disturb each other
//   cancel    an iterator may go at any time, whatever waits or runs
void CheckContract(const plan::Plan& plan, const ContractOptions& options = {});

}  // namespace penstock::engine_testing
