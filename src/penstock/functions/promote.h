// Which dtype a computation is done in: numpy 2's rules (NEP 50).
//
// bfloat16 stands where float16 would; the two together, or either with
// float32, make float32. A Python scalar ("weak") brings its kind and no width.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "penstock/data/dtype.h"
#include "penstock/functions/function.h"

namespace penstock::functions {

// For absl's string functions, whose string_view is its own.
inline absl::string_view Text(std::string_view text) {
  return {text.data(), text.size()};
}

// The dtype that two arrays meet in; none for a string and a number.
std::optional<DType> Promote(DType a, DType b);

struct WeakDType {
  DType dtype;
  bool is_weak;
};
// The dtype that arguments meet in. Only weak ones: numpy's default for them.
std::optional<DType> Promote(absl::Span<const WeakDType> args);
std::optional<DType> Promote(absl::Span<const ArgSpec> args);
std::optional<DType> Promote(absl::Span<const Arg> args);

// As above; InvalidArgument that names `function` and the dtypes if there is
// none.
absl::StatusOr<DType> PromoteOrError(std::string_view function,
                                     absl::Span<const ArgSpec> args);

// What numpy says of a Python integer that `dtype` cannot hold. OK for
// arguments that are no Python integers, and for dtypes that are not integers.
absl::Status CheckFits(const ArgSpec& arg, DType dtype);

// What a function can compute with, and what it makes of the rest.
enum class Rule : uint8_t {
  kAny,         // strings too
  kNumber,      // bool, integers, floats, complex
  kNotBool,     // integers, floats, complex; bool is an error
  kBoolAsInt8,  // as kNumber, but bool becomes int8
  kReal,        // as kBoolAsInt8, complex is an error
  kRealOrBool,  // as kNumber, complex is an error
  kBits,        // bool and integers
  kShift,       // integers; bool becomes int8
  kFloating,    // int8 -> float16, int16 -> float32, others -> float64
  kDivision,    // integers and bool -> float64
};

// The dtype a function under `rule` computes in, given the promoted one.
std::optional<DType> ComputeDType(Rule rule, DType promoted);
absl::StatusOr<DType> ComputeDTypeOrError(std::string_view function, Rule rule,
                                          DType promoted);

}  // namespace penstock::functions
