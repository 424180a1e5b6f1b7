// Functions that compute each item from the items at its place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/functions/broadcast.h"
#include "penstock/functions/function.h"
#include "penstock/functions/promote.h"

namespace penstock::functions {

// Casts argument k to `compute[k]`, broadcasts row by row and runs `loop`;
// the result has dtype `result`. Rows whose shapes do not fit are row errors.
absl::StatusOr<Column> RunElementwise(absl::Span<const Arg> args,
                                      const DType* compute, DType result,
                                      Loop loop, EvalContext& context);

// The type that items of type T are computed in.
template <typename T>
struct ComputedIn {
  using Type = T;
};
template <>
struct ComputedIn<Half> {
  using Type = float;
};
template <>
struct ComputedIn<Bfloat16> {
  using Type = float;
};
template <typename T>
using ComputeType = typename ComputedIn<T>::Type;

// Whether Op has a loop of its own for what is computed as float.
template <typename Op>
concept HasFloats = requires(float* items) {
  Op::Floats(items, items, int64_t{1});
};

// Op::Floats() of items that do not lie together or are no floats, in parts.
template <typename Op, typename T>
void FloatsInParts(const std::byte* in, int64_t stride, T* out, int64_t count) {
  constexpr int64_t kPart = 256;
  float items[kPart];
  for (int64_t done = 0; done < count; done += kPart) {
    const int64_t part = std::min(kPart, count - done);
    for (int64_t i = 0; i < part; ++i, in += stride) {
      items[i] = static_cast<float>(*reinterpret_cast<const T*>(in));
    }
    Op::Floats(items, items, part);
    for (int64_t i = 0; i < part; ++i) {
      out[done + i] = static_cast<T>(items[i]);
    }
  }
}

// out[i] = Op::Do(in[i]); the small floats are computed as float.
template <typename Op, typename In, typename Out>
void UnaryLoop(const std::byte* const* in, const int64_t* strides,
               std::byte* out, int64_t count) {
  using C = ComputeType<In>;
  Out* __restrict to = reinterpret_cast<Out*>(out);
  if constexpr (HasFloats<Op> && std::is_same_v<C, float>) {
    if constexpr (std::is_same_v<In, float>) {
      if (strides[0] == sizeof(In)) {
        return Op::Floats(reinterpret_cast<const float*>(in[0]), to, count);
      }
    }
    return FloatsInParts<Op, In>(in[0], strides[0], to, count);
  }
  const In* a = reinterpret_cast<const In*>(in[0]);
  if (strides[0] == sizeof(In)) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<Out>(Op::Do(static_cast<C>(a[i])));
    }
    return;
  }
  const std::byte* at = in[0];
  for (int64_t i = 0; i < count; ++i, at += strides[0]) {
    to[i] = static_cast<Out>(
        Op::Do(static_cast<C>(*reinterpret_cast<const In*>(at))));
  }
}

// out[i] = Op::Do(a[i], b[i]), with loops of their own for the three cases that
// a compiler can vectorise: two arrays, and an array with one item.
template <typename Op, typename A, typename B, typename Out>
void BinaryLoop(const std::byte* const* in, const int64_t* strides,
                std::byte* out, int64_t count) {
  using CA = ComputeType<A>;
  using CB = ComputeType<B>;
  Out* __restrict to = reinterpret_cast<Out*>(out);
  const A* a = reinterpret_cast<const A*>(in[0]);
  const B* b = reinterpret_cast<const B*>(in[1]);
  if (strides[0] == sizeof(A) && strides[1] == sizeof(B)) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<Out>(
          Op::Do(static_cast<CA>(a[i]), static_cast<CB>(b[i])));
    }
  } else if (strides[0] == sizeof(A) && strides[1] == 0) {
    const CB y = static_cast<CB>(*b);
    if constexpr (requires { Op::template WithScalar<Out>(a, y, to, count); }) {
      if (Op::template WithScalar<Out>(a, y, to, count)) return;
    }
    for (int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<Out>(Op::Do(static_cast<CA>(a[i]), y));
    }
  } else if (strides[0] == 0 && strides[1] == sizeof(B)) {
    const CA x = static_cast<CA>(*a);
    for (int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<Out>(Op::Do(x, static_cast<CB>(b[i])));
    }
  } else {
    const std::byte* at_a = in[0];
    const std::byte* at_b = in[1];
    for (int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<Out>(
          Op::Do(static_cast<CA>(*reinterpret_cast<const A*>(at_a)),
                 static_cast<CB>(*reinterpret_cast<const B*>(at_b))));
      at_a += strides[0];
      at_b += strides[1];
    }
  }
}

// The loop of `Op` from items of `dtype` to items of the same dtype; null where
// Op::Do does not take that type (never asked for, by the function's Rule).
template <typename Op>
Loop SameTypeBinaryLoop(DType dtype) {
  return VisitDType(dtype, [](auto item) -> Loop {
    using T = decltype(item);
    using C = ComputeType<T>;
    if constexpr (requires(C c) { Op::Do(c, c); }) {
      return &BinaryLoop<Op, T, T, T>;
    } else {
      return nullptr;
    }
  });
}

template <typename Op>
Loop SameTypeUnaryLoop(DType dtype) {
  return VisitDType(dtype, [](auto item) -> Loop {
    using T = decltype(item);
    using C = ComputeType<T>;
    if constexpr (requires(C c) { Op::Do(c); }) {
      return &UnaryLoop<Op, T, T>;
    } else {
      return nullptr;
    }
  });
}

// From items of `dtype` to bool.
template <typename Op>
Loop BoolBinaryLoop(DType dtype) {
  return VisitDType(dtype, [](auto item) -> Loop {
    using T = decltype(item);
    using C = ComputeType<T>;
    if constexpr (requires(C c) { Op::Do(c, c); }) {
      return &BinaryLoop<Op, T, T, bool>;
    } else {
      return nullptr;
    }
  });
}

template <typename Op>
Loop BoolUnaryLoop(DType dtype) {
  return VisitDType(dtype, [](auto item) -> Loop {
    using T = decltype(item);
    using C = ComputeType<T>;
    if constexpr (requires(C c) { Op::Do(c); }) {
      return &UnaryLoop<Op, T, bool>;
    } else {
      return nullptr;
    }
  });
}

// Infers and evaluates a function whose arguments are promoted to one dtype, in
// which it is computed (Op::kRule) and which its result has. Op has kName,
// kRule and Do().
template <typename Op>
absl::StatusOr<TensorSpec> InferSameType(absl::Span<const ArgSpec> args,
                                         const Attrs&);
template <typename Op>
absl::StatusOr<Column> EvalSameType(absl::Span<const Arg> args, const Attrs&,
                                    const TensorSpec& result,
                                    EvalContext& context);

// The part of InferSameType() that knows no Op.
absl::StatusOr<TensorSpec> InferPromoted(std::string_view name, Rule rule,
                                         absl::Span<const ArgSpec> args);

template <typename Op>
absl::StatusOr<TensorSpec> InferSameType(absl::Span<const ArgSpec> args,
                                         const Attrs&) {
  return InferPromoted(Op::kName, Op::kRule, args);
}

template <typename Op>
absl::StatusOr<Column> EvalSameType(absl::Span<const Arg> args, const Attrs&,
                                    const TensorSpec& result,
                                    EvalContext& context) {
  const DType compute[] = {result.dtype, result.dtype};
  const Loop loop = args.size() == 1 ? SameTypeUnaryLoop<Op>(result.dtype)
                                     : SameTypeBinaryLoop<Op>(result.dtype);
  return RunElementwise(args, compute, result.dtype, loop, context);
}

}  // namespace penstock::functions
