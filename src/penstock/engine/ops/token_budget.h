// How many elements go into a batch with a budget of tokens, and what becomes
// of those that are longer than it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "penstock/plan.pb.h"

namespace penstock::engine {

// A batch that grows: its rows times its longest are at most `max_tokens`. One
// that is empty takes any element. An element counts as one token at least, so
// that a batch of empty ones has an end, too.
class TokenBudget final {
 public:
  TokenBudget(int64_t max_tokens, int64_t max_rows)
      : max_tokens_(max_tokens), max_rows_(max_rows) {}

  int64_t rows() const { return rows_; }

  bool Fits(int64_t length) const {
    return rows_ == 0 || (rows_ < max_rows_ && std::max(longest_, length) <=
                                                   max_tokens_ / (rows_ + 1));
  }
  bool IsFull() const { return rows_ > 0 && !Fits(1); }
  void Add(int64_t length) {
    ++rows_;
    longest_ = std::max(longest_, length);
  }
  void Clear() {
    rows_ = 0;
    longest_ = 1;
  }

 private:
  const int64_t max_tokens_;
  const int64_t max_rows_;
  int64_t rows_ = 0;
  int64_t longest_ = 1;
};

// OK, or why an element of this length is in no batch.
inline absl::Status CheckLength(int64_t length, int64_t max_tokens,
                                plan::TooLong too_long) {
  if (length < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("an element's length must be at least 0; got ", length));
  }
  if (length <= max_tokens || too_long != plan::TOO_LONG_IS_ERROR) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "an element must have at most max_tokens, ", max_tokens, "; got ", length,
      "\n  Cut it or filter() it out, raise max_tokens, or say "
      "too_long=\"drop\" or \"alone\"."));
}

}  // namespace penstock::engine
