// Random numbers of one row, drawn one after another. They depend on (random
// key, seed, lineage of the row) alone.
#pragma once

#include <cstdint>

#include "penstock/base/hash.h"
#include "penstock/functions/function.h"

namespace penstock::functions {

class Draws final {
 public:
  // REQUIRES: context.lineage is not null.
  Draws(const EvalContext& context, int64_t seed, int64_t row)
      : next_(Combine(Combine(context.random_key, static_cast<uint64_t>(seed)),
                      context.lineage[row])) {}

  uint64_t Word() {
    next_ += kStep;
    return Mix(next_);
  }
  // As `words` calls of Word() would.
  void Skip(int64_t words) { next_ += static_cast<uint64_t>(words) * kStep; }
  // From [0, 1).
  double Fraction() { return static_cast<double>(Word() >> 11) * 0x1p-53; }
  double Between(double low, double high) {
    return low + (high - low) * Fraction();
  }
  // From [0, end); the bias is below end / 2^64. REQUIRES: end >= 1.
  int64_t Below(int64_t end) {
    const auto product = static_cast<unsigned __int128>(Word()) *
                         static_cast<unsigned __int128>(end);
    return static_cast<int64_t>(product >> 64);
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15ULL;

  uint64_t next_;
};

}  // namespace penstock::functions
