#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/cast.h"
#include "penstock/functions/elementwise.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/number.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

template <typename T>
const T& At(const std::byte* base, int64_t stride, int64_t i) {
  return *reinterpret_cast<const T*>(base + i * stride);
}

// By the size of an item: what it is does not matter.
template <typename T>
void WhereLoop(const std::byte* const* in, const int64_t* strides,
               std::byte* out, int64_t count) {
  T* __restrict to = reinterpret_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) {
    const bool condition = At<bool>(in[0], strides[0], i);
    to[i] = At<T>(in[condition ? 1 : 2], strides[condition ? 1 : 2], i);
  }
}

Loop WhereLoopFor(size_t item_size) {
  switch (item_size) {
    case 1:
      return WhereLoop<uint8_t>;
    case 2:
      return WhereLoop<uint16_t>;
    case 4:
      return WhereLoop<uint32_t>;
    case 8:
      return WhereLoop<uint64_t>;
    default:
      return WhereLoop<StringRef>;
  }
}

absl::StatusOr<TensorSpec> InferWhere(absl::Span<const ArgSpec> args,
                                      const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(ComputeDTypeOrError("where's condition",
                                               Rule::kNumber,
                                               args[0].spec.dtype)
                               .status());
  TensorSpec result;
  PENSTOCK_ASSIGN_OR_RETURN(
      result, InferPromoted("where", Rule::kAny, args.subspan(1)));
  PENSTOCK_ASSIGN_OR_RETURN(result.shape, BroadcastShape(args));
  return result;
}

absl::StatusOr<Column> EvalWhere(absl::Span<const Arg> args, const Attrs&,
                                 const TensorSpec& result,
                                 EvalContext& context) {
  const DType compute[] = {DType::kBool, result.dtype, result.dtype};
  return RunElementwise(args, compute, result.dtype,
                        WhereLoopFor(ItemSize(result.dtype)), context);
}

template <typename T>
void ClipLoop(const std::byte* const* in, const int64_t* strides,
              std::byte* out, int64_t count) {
  using C = ComputeType<T>;
  T* __restrict to = reinterpret_cast<T*>(out);
  const T* from = reinterpret_cast<const T*>(in[0]);
  if (strides[0] == sizeof(T) && strides[1] == 0 && strides[2] == 0) {
    const C low = static_cast<C>(At<T>(in[1], 0, 0));
    const C high = static_cast<C>(At<T>(in[2], 0, 0));
    for (int64_t i = 0; i < count; ++i) {
      to[i] =
          static_cast<T>(Minimum(Maximum(static_cast<C>(from[i]), low), high));
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const C value = static_cast<C>(At<T>(in[0], strides[0], i));
    const C low = static_cast<C>(At<T>(in[1], strides[1], i));
    const C high = static_cast<C>(At<T>(in[2], strides[2], i));
    to[i] = static_cast<T>(Minimum(Maximum(value, low), high));
  }
}

// As numpy, bounds that x's dtype cannot hold are no bounds.
absl::StatusOr<TensorSpec> InferClip(absl::Span<const ArgSpec> args,
                                     const Attrs&) {
  PENSTOCK_ASSIGN_OR_RETURN(const DType promoted, PromoteOrError("clip", args));
  TensorSpec result;
  PENSTOCK_ASSIGN_OR_RETURN(
      result.dtype, ComputeDTypeOrError("clip", Rule::kNumber, promoted));
  PENSTOCK_RETURN_IF_ERROR(CheckFits(args[0], result.dtype));
  PENSTOCK_ASSIGN_OR_RETURN(result.shape, BroadcastShape(args));
  return result;
}

// A Python integer brought into the range of `dtype`.
Column Saturated(const Column& value, DType dtype) {
  return VisitDType(dtype, [&](auto item) -> Column {
    using T = decltype(item);
    if constexpr (Integer<T>) {
      T limited;
      if (value.dtype() == DType::kUint64) {
        limited = static_cast<T>(std::min<uint64_t>(
            *value.Row<uint64_t>(0), std::numeric_limits<T>::max()));
      } else {
        const int64_t own = *value.Row<int64_t>(0);
        limited = std::cmp_less(own, std::numeric_limits<T>::min())
                      ? std::numeric_limits<T>::min()
                  : std::cmp_greater(own, std::numeric_limits<T>::max())
                      ? std::numeric_limits<T>::max()
                      : static_cast<T>(own);
      }
      return MakeColumn<T>(absl::MakeConstSpan(&limited, 1));
    } else {
      return value;
    }
  });
}

absl::StatusOr<Column> EvalClip(absl::Span<const Arg> args, const Attrs&,
                                const TensorSpec& result,
                                EvalContext& context) {
  Arg own[] = {args[0], args[1], args[2]};
  Column bounds[2];
  for (int i = 0; i < 2; ++i) {
    Arg& bound = own[i + 1];
    const ArgSpec spec{
        {bound.column->dtype(), {}}, bound.is_weak, bound.column};
    if (CheckFits(spec, result.dtype).ok()) continue;
    bounds[i] = Saturated(*bound.column, result.dtype);
    bound.column = &bounds[i];
  }
  const DType compute[] = {result.dtype, result.dtype, result.dtype};
  const Loop loop = VisitDType(result.dtype, [](auto item) -> Loop {
    using T = decltype(item);
    if constexpr (Number<ComputeType<T>>) {
      return &ClipLoop<T>;
    } else {
      return nullptr;
    }
  });
  return RunElementwise(own, compute, result.dtype, loop, context);
}

absl::StatusOr<TensorSpec> InferCast(absl::Span<const ArgSpec> args,
                                     const Attrs& attrs) {
  TensorSpec result = args[0].spec;
  PENSTOCK_ASSIGN_OR_RETURN(result.dtype,
                            DTypeAttr(attrs, "dtype", result.dtype));
  if (result.dtype != args[0].spec.dtype &&
      (result.dtype == DType::kString ||
       args[0].spec.dtype == DType::kString)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cast cannot make ", Text(Name(result.dtype)), " of ",
                     Text(Name(args[0].spec.dtype))));
  }
  return result;
}

absl::StatusOr<Column> EvalCast(absl::Span<const Arg> args, const Attrs&,
                                const TensorSpec& result, EvalContext&) {
  return Cast(*args[0].column, result.dtype);
}

}  // namespace

std::vector<Function> SelectFunctions() {
  return {
      {.name = "where",
       .params = {{"condition", ParamKind::kTensor, "", "Which to take."},
                  {"x", ParamKind::kTensor, "", "Taken where it is nonzero."},
                  {"y", ParamKind::kTensor, "", "Taken where it is zero."}},
       .doc = "Items of x where the condition holds, else of y.",
       .example = ">>> ps.where(np.array([True, False]), np.array([1, 2]), 0)\n"
                  "array([1, 0])",
       .infer = InferWhere,
       .eval = EvalWhere},
      {.name = "clip",
       .params = {{"x", ParamKind::kTensor, "", "The values."},
                  {"min", ParamKind::kTensor, "", "The least result."},
                  {"max", ParamKind::kTensor, "", "The greatest result."}},
       .doc = "x, but not below min, and then not above max.",
       .example = ">>> ps.clip(np.array([1, 5, 9]), 2, 6)\narray([2, 5, 6])",
       .infer = InferClip,
       .eval = EvalClip},
      {.name = "cast",
       .params = {{"x", ParamKind::kTensor, "", "The values."},
                  {"dtype", ParamKind::kDType, "", "What they become."}},
       .doc = "x in another dtype, as numpy's astype.",
       .example = ">>> ps.cast(np.array([1.7, -1.7]), np.int32)\n"
                  "array([ 1, -1], dtype=int32)",
       .infer = InferCast,
       .eval = EvalCast},
  };
}

}  // namespace penstock::functions
