#include "penstock/plan/expect.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/builder.h"
#include "penstock/plan/convert.h"

namespace penstock::plan {

absl::Status TypeError(absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kTypeError, absl::Cord());
  return status;
}

absl::Status AtLeast(absl::string_view name, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be at least ", least, "; got ", value));
}

absl::Status InRange(absl::string_view name, int64_t value, int64_t least,
                     int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " must be at least ",
                                                 least, " and at most ", most,
                                                 "; got ", value));
}

absl::StatusOr<penstock::TensorSpec> SpecOf(
    absl::string_view name, const Value& value,
    absl::Span<const penstock::TensorSpec> bound) {
  switch (value.kind_case()) {
    case Value::kConstant: {
      PENSTOCK_ASSIGN_OR_RETURN(Column column, FromProto(value.constant()));
      penstock::TensorSpec spec;
      spec.dtype = column.dtype();
      spec.shape = penstock::PartialShape(column.shape());
      return spec;
    }
    case Value::kBound:
      if (value.bound() < bound.size()) return bound[value.bound()];
      return absl::InvalidArgumentError(
          absl::StrCat(name, " must be one of ", bound.size(),
                       " bound values; got number ", value.bound()));
    case Value::KIND_NOT_SET:
      return absl::InvalidArgumentError(
          absl::StrCat(name, " must be given; got nothing"));
  }
  return absl::InternalError("not a kind of value");
}

absl::StatusOr<Number> NumberOf(const Tensor& constant) {
  PENSTOCK_ASSIGN_OR_RETURN(Column column, FromProto(constant));
  return VisitDType(column.dtype(), [&](auto zero) -> absl::StatusOr<Number> {
    using T = decltype(zero);
    Number result;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const T value = *column.Row<T>(0);
      if (!std::in_range<int64_t>(value)) {
        return absl::InvalidArgumentError(
            absl::StrCat("a number must be below 2^63; got ", value));
      }
      result.integer = static_cast<int64_t>(value);
      result.number = static_cast<double>(value);
      return result;
    } else if constexpr (kDTypeOf<T> == penstock::DType::kFloat16 ||
                         kDTypeOf<T> == penstock::DType::kBfloat16 ||
                         std::is_floating_point_v<T>) {
      result.is_integer = false;
      if constexpr (std::is_floating_point_v<T>) {
        result.number = *column.Row<T>(0);
      } else {
        result.number = static_cast<float>(*column.Row<T>(0));
      }
      return result;
    }
    return absl::InternalError("not a number");
  });
}

absl::StatusOr<std::optional<int64_t>> IntegerOf(
    absl::string_view name, const Value& value,
    absl::Span<const penstock::TensorSpec> bound) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::TensorSpec spec,
                            SpecOf(name, value, bound));
  if (!IsInteger(spec.dtype) || !spec.shape.Accepts(penstock::Shape{})) {
    return TypeError(
        absl::StrCat(name, " must be a scalar integer; got ", spec.ToString()));
  }
  if (!value.has_constant()) return std::optional<int64_t>();
  PENSTOCK_ASSIGN_OR_RETURN(Number number, NumberOf(value.constant()));
  return std::optional<int64_t>(number.integer);
}

absl::Status CheckCount(absl::string_view name, const Value& value,
                        int64_t least,
                        absl::Span<const penstock::TensorSpec> bound) {
  PENSTOCK_ASSIGN_OR_RETURN(std::optional<int64_t> count,
                            IntegerOf(name, value, bound));
  return AtLeast(name, count.value_or(least), least);
}

absl::Status CheckStrings(absl::string_view name, const Value& value,
                          absl::Span<const penstock::TensorSpec> bound) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::TensorSpec spec,
                            SpecOf(name, value, bound));
  const bool is_short = !spec.shape.has_rank() || spec.shape.rank() <= 1;
  if (spec.dtype == penstock::DType::kString && is_short) {
    return absl::OkStatus();
  }
  return TypeError(absl::StrCat(
      name, " must be a string or a vector of strings; got ", spec.ToString()));
}

absl::Status SameTypes(absl::string_view what,
                       const penstock::ElementSpec& expected,
                       const penstock::ElementSpec& found) {
  bool is_same = SameStructure(expected, found);
  if (is_same) {
    const std::vector<penstock::TensorSpec> a = expected.Flatten();
    const std::vector<penstock::TensorSpec> b = found.Flatten();
    for (size_t i = 0; i < a.size(); ++i) is_same &= a[i].dtype == b[i].dtype;
  }
  if (is_same) return absl::OkStatus();
  return TypeError(absl::StrCat(what, " must have the structure and dtypes of ",
                                expected.ToString(), "; got ",
                                found.ToString()));
}

absl::StatusOr<std::optional<int64_t>> CommonFirstDimension(
    absl::string_view what, absl::Span<const penstock::TensorSpec> leaves) {
  if (leaves.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " must have at least one component; got none"));
  }
  std::optional<int64_t> common;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const penstock::PartialShape& shape = leaves[i].shape;
    if (!shape.has_rank()) continue;
    if (shape.rank() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " must have components of at least one dimension;",
                       " got ", leaves[i].ToString(), " as component ", i));
    }
    const std::optional<int64_t> first = shape.dims()[0];
    if (!common.has_value()) common = first;
    if (first.has_value() && first != common) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " must have components of one first dimension, ",
                       *common, "; got ", *first, " in component ", i));
    }
  }
  return common;
}

}  // namespace penstock::plan
