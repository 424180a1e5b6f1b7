#include "penstock/functions/promote.h"

#include <algorithm>
#include <limits>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/base/status.h"

namespace penstock::functions {
namespace {

enum Kind { kBool, kInteger, kFloat, kComplex, kString };

Kind KindOf(DType dtype) {
  if (dtype == DType::kBool) return kBool;
  if (IsInteger(dtype)) return kInteger;
  if (IsFloat(dtype)) return kFloat;
  if (IsComplex(dtype)) return kComplex;
  return kString;
}

DType PromoteIntegers(DType a, DType b) {
  if (IsUnsigned(a) == IsUnsigned(b)) return std::max(a, b);
  const DType with_sign = IsUnsigned(a) ? b : a;
  const DType without = IsUnsigned(a) ? a : b;
  if (ItemSize(with_sign) > ItemSize(without)) return with_sign;
  switch (without) {
    case DType::kUint8:
      return DType::kInt16;
    case DType::kUint16:
      return DType::kInt32;
    case DType::kUint32:
      return DType::kInt64;
    default:
      return DType::kFloat64;
  }
}

// The least float that holds a bool or integer dtype, as numpy sees it.
DType FloatFor(DType dtype) {
  switch (ItemSize(dtype)) {
    case 1:
      return DType::kFloat16;
    case 2:
      return DType::kFloat32;
    default:
      return DType::kFloat64;
  }
}

DType PromoteFloats(DType a, DType b) {
  if (a == b) return a;
  return std::max({a, b, DType::kFloat32});
}

DType PromoteWithFloat(DType floating, DType other) {
  if (IsFloat(other)) return PromoteFloats(floating, other);
  const DType least = FloatFor(other);
  if (least == DType::kFloat16) return floating;
  return PromoteFloats(floating, least);
}

DType PromoteWithComplex(DType complex, DType other) {
  if (IsComplex(other)) return std::max(complex, other);
  const DType real = IsFloat(other) ? other : FloatFor(other);
  return real == DType::kFloat64 ? DType::kComplex128 : complex;
}

bool FitsIn(const Column& value, DType dtype) {
  return VisitDType(dtype, [&](auto item) -> bool {
    using T = decltype(item);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (value.dtype() == DType::kUint64) {
        return std::in_range<T>(*value.Row<uint64_t>(0));
      }
      return std::in_range<T>(*value.Row<int64_t>(0));
    } else {
      return true;
    }
  });
}

template <typename Args>
std::optional<DType> PromoteSpan(const Args& args) {
  absl::InlinedVector<WeakDType, 4> dtypes;
  for (const auto& arg : args) {
    if constexpr (requires { arg.spec; }) {
      dtypes.push_back({arg.spec.dtype, arg.is_weak});
    } else {
      dtypes.push_back({arg.column->dtype(), arg.is_weak});
    }
  }
  return Promote(absl::Span<const WeakDType>(dtypes));
}

}  // namespace

std::optional<DType> Promote(DType a, DType b) {
  if (a == b) return a;
  const Kind ka = KindOf(a);
  const Kind kb = KindOf(b);
  if (ka == kString || kb == kString) return std::nullopt;
  if (ka == kBool) return b;
  if (kb == kBool) return a;
  if (ka == kComplex) return PromoteWithComplex(a, b);
  if (kb == kComplex) return PromoteWithComplex(b, a);
  if (ka == kFloat) return PromoteWithFloat(a, b);
  if (kb == kFloat) return PromoteWithFloat(b, a);
  return PromoteIntegers(a, b);
}

std::optional<DType> Promote(absl::Span<const WeakDType> args) {
  std::optional<DType> strong;
  Kind weak = kBool;
  std::optional<DType> weak_dtype;
  for (const WeakDType& arg : args) {
    if (arg.is_weak) {
      weak = std::max(weak, KindOf(arg.dtype));
      weak_dtype = weak_dtype ? Promote(*weak_dtype, arg.dtype) : arg.dtype;
      if (!weak_dtype) return std::nullopt;
    } else {
      strong = strong ? Promote(*strong, arg.dtype) : arg.dtype;
      if (!strong) return std::nullopt;
    }
  }
  if (!strong) return weak_dtype;
  if (!weak_dtype) return strong;
  const Kind kind = KindOf(*strong);
  if (kind == kString || weak == kString) {
    return kind == weak ? strong : std::nullopt;
  }
  if (weak <= kind) return strong;
  if (weak == kInteger) return DType::kInt64;
  if (weak == kFloat) return DType::kFloat64;
  if (kind == kFloat && *strong != DType::kFloat64) return DType::kComplex64;
  return DType::kComplex128;
}

std::optional<DType> Promote(absl::Span<const ArgSpec> args) {
  return PromoteSpan(args);
}

std::optional<DType> Promote(absl::Span<const Arg> args) {
  return PromoteSpan(args);
}

absl::StatusOr<DType> PromoteOrError(std::string_view function,
                                     absl::Span<const ArgSpec> args) {
  const std::optional<DType> dtype = Promote(args);
  if (!dtype) {
    return absl::InvalidArgumentError(absl::StrCat(
        Text(function), " needs dtypes that can be joined; got ",
        absl::StrJoin(args, " and ", [](std::string* out, const ArgSpec& arg) {
          absl::StrAppend(out, Text(Name(arg.spec.dtype)));
        })));
  }
  return *dtype;
}

absl::Status CheckFits(const ArgSpec& arg, DType dtype) {
  if (!arg.is_weak || arg.constant == nullptr) return absl::OkStatus();
  if (!IsInteger(arg.spec.dtype) || FitsIn(*arg.constant, dtype)) {
    return absl::OkStatus();
  }
  const Column& value = *arg.constant;
  return absl::InvalidArgumentError(absl::StrCat(
      "Python integer ",
      value.dtype() == DType::kUint64 ? absl::StrCat(*value.Row<uint64_t>(0))
                                      : absl::StrCat(*value.Row<int64_t>(0)),
      " out of bounds for ", Text(Name(dtype))));
}

std::optional<DType> ComputeDType(Rule rule, DType promoted) {
  const Kind kind = KindOf(promoted);
  if (rule == Rule::kAny) return promoted;
  if (kind == kString) return std::nullopt;
  switch (rule) {
    case Rule::kAny:
    case Rule::kNumber:
      return promoted;
    case Rule::kNotBool:
      if (kind == kBool) return std::nullopt;
      return promoted;
    case Rule::kBoolAsInt8:
      return kind == kBool ? DType::kInt8 : promoted;
    case Rule::kReal:
      if (kind == kComplex) return std::nullopt;
      return kind == kBool ? DType::kInt8 : promoted;
    case Rule::kRealOrBool:
      if (kind == kComplex) return std::nullopt;
      return promoted;
    case Rule::kBits:
      if (kind > kInteger) return std::nullopt;
      return promoted;
    case Rule::kShift:
      if (kind > kInteger) return std::nullopt;
      return kind == kBool ? DType::kInt8 : promoted;
    case Rule::kFloating:
      return kind <= kInteger ? FloatFor(promoted) : promoted;
    case Rule::kDivision:
      return kind <= kInteger ? DType::kFloat64 : promoted;
  }
  return std::nullopt;
}

absl::StatusOr<DType> ComputeDTypeOrError(std::string_view function, Rule rule,
                                          DType promoted) {
  const std::optional<DType> dtype = ComputeDType(rule, promoted);
  if (dtype) return *dtype;
  return absl::InvalidArgumentError(absl::StrCat(
      Text(function), " is not defined for ", Text(Name(promoted))));
}

}  // namespace penstock::functions
