// Reading what is fixed when a function is recorded, and constant arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/shape.h"
#include "penstock/functions/function.h"

namespace penstock::functions {

using Ints = absl::InlinedVector<int64_t, 4>;

// Each gives `otherwise` if the attribute is absent or None, and
// InvalidArgument if it is of another kind. An int may stand for a float.
absl::StatusOr<bool> BoolAttr(const Attrs& attrs, std::string_view name,
                              bool otherwise);
absl::StatusOr<int64_t> IntAttr(const Attrs& attrs, std::string_view name,
                                int64_t otherwise);
absl::StatusOr<double> FloatAttr(const Attrs& attrs, std::string_view name,
                                 double otherwise);
absl::StatusOr<DType> DTypeAttr(const Attrs& attrs, std::string_view name,
                                DType otherwise);
absl::StatusOr<std::string_view> TextAttr(const Attrs& attrs,
                                          std::string_view name);
// Nothing for None; one int counts as a list of it.
absl::StatusOr<std::optional<Ints>> AxisAttr(const Attrs& attrs,
                                             std::string_view name);

// What all random functions have.
inline constexpr Param kSeedParam = {
    "seed", ParamKind::kInt, "None",
    "If every random call of a function has one, all runs of a program are "
    "equal; left out, one is drawn for each dataset."};

// 0 <= axis < rank, counting from the end if negative; else what numpy says.
absl::StatusOr<int> NormalAxis(int64_t axis, int rank);

// The integers of a row, of any integer or bool dtype.
Ints ReadInts(const Column& column, int64_t row);
int64_t ReadInt(const Column& column, int64_t row);

// Those of a constant; nothing if it is none.
std::optional<Ints> ConstantInts(const ArgSpec& arg);

// InvalidArgument unless `arg` holds integers and has at most `rank`
// dimensions, as far as is known. An empty constant passes with any dtype: it
// is how () arrives.
absl::Status CheckInts(std::string_view what, const ArgSpec& arg, int rank);

// How many integers a row of this vector or scalar holds, if that is known.
std::optional<int64_t> KnownCount(const ArgSpec& arg);

}  // namespace penstock::functions
