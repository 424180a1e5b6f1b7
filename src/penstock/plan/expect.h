// The small rules that operators' checks are made of, and their wording:
// expected first, found last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "penstock/data/spec.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// InvalidArgument that is a TypeError in Python.
absl::Status TypeError(absl::string_view message);

absl::Status AtLeast(absl::string_view name, int64_t value, int64_t least);
// `op`'s num_parallel_calls, if it is set.
template <typename Op>
absl::Status CheckParallelism(const Op& op) {
  return op.has_parallelism()
             ? AtLeast("num_parallel_calls", op.parallelism(), 1)
             : absl::OkStatus();
}
absl::Status InRange(absl::string_view name, int64_t value, int64_t least,
                     int64_t most);

// The spec of a parameter: of its constant, or of the bound value it names.
absl::StatusOr<penstock::TensorSpec> SpecOf(
    absl::string_view name, const Value& value,
    absl::Span<const penstock::TensorSpec> bound);

// The integer that `value` is, if it is a constant; nothing if it is known only
// when the sub-plan starts. A TypeError unless it is a scalar of an integer
// dtype.
absl::StatusOr<std::optional<int64_t>> IntegerOf(
    absl::string_view name, const Value& value,
    absl::Span<const penstock::TensorSpec> bound);

// IntegerOf, and at least `least` if it is a constant.
absl::Status CheckCount(absl::string_view name, const Value& value,
                        int64_t least,
                        absl::Span<const penstock::TensorSpec> bound);

// A TypeError unless it is a string or a vector of strings.
absl::Status CheckStrings(absl::string_view name, const Value& value,
                          absl::Span<const penstock::TensorSpec> bound);

// What a constant holds, for arithmetic in the plan. REQUIRES: its conversion
// (convert.h) succeeds, and it is a scalar of an integer or floating dtype.
struct Number {
  bool is_integer = true;
  int64_t integer = 0;  // if is_integer
  double number = 0;    // always
};
absl::StatusOr<Number> NumberOf(const Tensor& constant);

// Whether elements of `found` may be used where `expected` were: same structure
// and dtypes; shapes do not count. A TypeError that begins with `what`.
absl::Status SameTypes(absl::string_view what,
                       const penstock::ElementSpec& expected,
                       const penstock::ElementSpec& found);

// The first dimension that components split along axis 0 have in common, if it
// is known: of unbatch, rebatch and slices. Each needs one, and those that are
// known must be equal.
absl::StatusOr<std::optional<int64_t>> CommonFirstDimension(
    absl::string_view what, absl::Span<const penstock::TensorSpec> leaves);

}  // namespace penstock::plan
