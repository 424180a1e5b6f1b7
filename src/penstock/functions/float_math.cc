#include "penstock/functions/float_math.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

// Highway reads this file once for each kind of processor.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/functions/float_math.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// Only after these.
#include <hwy/contrib/math/math-inl.h>

#define PENSTOCK_FLOAT_FUNCTIONS(F) \
  F(Sin) F(Cos) F(Tanh) F(Arctan) F(Log2) F(Log10) F(Log1p) F(Expm1)

HWY_BEFORE_NAMESPACE();
namespace penstock::functions {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using Floats = hn::Rebind<float, Doubles>;

// A function, where Highway's is good for it, and what it is elsewhere.
#define PENSTOCK_FLOATS(Name, Wide, standard, low, high, zero_to_zero) \
  struct Name {                                                        \
    static constexpr float kLow = low;                                 \
    static constexpr float kHigh = high;                               \
    static constexpr bool kZeroToZero = zero_to_zero;                  \
    template <typename V>                                              \
    static HWY_INLINE V Do(V x) {                                      \
      return hn::Wide(Doubles(), x);                                   \
    }                                                                  \
    static float Elsewhere(float x) {                                  \
      return static_cast<float>(standard(static_cast<double>(x)));     \
    }                                                                  \
  }

// Further out than 39000, Highway reduces angles too roughly; -1 + 2^-24 is the
// next float above -1.
PENSTOCK_FLOATS(Sin, Sin, std::sin, -39000, 39000, true);
PENSTOCK_FLOATS(Cos, Cos, std::cos, -39000, 39000, false);
PENSTOCK_FLOATS(Tanh, Tanh, std::tanh, -100, 100, true);
PENSTOCK_FLOATS(Arctan, Atan, std::atan, -FLT_MAX, FLT_MAX, true);
PENSTOCK_FLOATS(Log2, Log2, std::log2, FLT_TRUE_MIN, FLT_MAX, false);
PENSTOCK_FLOATS(Log10, Log10, std::log10, FLT_TRUE_MIN, FLT_MAX, false);
PENSTOCK_FLOATS(Log1p, Log1p, std::log1p, -1 + 0x1p-24F, FLT_MAX, true);
PENSTOCK_FLOATS(Expm1, Expm1, std::expm1, -100, 100, true);
#undef PENSTOCK_FLOATS

// One vector of items.
template <typename Op>
HWY_INLINE void RunVector(const float* in, float* out) {
  const Floats floats;
  const auto x = hn::LoadU(floats, in);
  auto y = hn::DemoteTo(floats, Op::Do(hn::PromoteTo(Doubles(), x)));
  if constexpr (Op::kZeroToZero) {  // with its sign
    y = hn::IfThenElse(hn::Eq(x, hn::Zero(floats)), x, y);
  }
  hn::StoreU(y, floats, out);
  const auto is_inside = hn::And(hn::Ge(x, hn::Set(floats, Op::kLow)),
                                 hn::Le(x, hn::Set(floats, Op::kHigh)));
  if (HWY_LIKELY(hn::AllTrue(floats, is_inside))) return;
  float items[hn::MaxLanes(Doubles())];
  hn::StoreU(x, floats, items);
  for (size_t i = 0; i < hn::Lanes(floats); ++i) {
    if (!(items[i] >= Op::kLow && items[i] <= Op::kHigh)) {
      out[i] = Op::Elsewhere(items[i]);
    }
  }
}

template <typename Op>
HWY_INLINE void Run(const float* in, float* out, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Doubles()));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) RunVector<Op>(in + i, out + i);
  if (i == count) return;
  // The rest is computed like all others, beside items that nobody asked for.
  float rest[hn::MaxLanes(Doubles())];
  for (int64_t k = 0; k < lanes; ++k) rest[k] = in[std::min(i + k, count - 1)];
  RunVector<Op>(rest, rest);
  for (int64_t k = i; k < count; ++k) out[k] = rest[k - i];
}

#define PENSTOCK_FLOATS(Name)                                     \
  void Name##Floats(const float* in, float* out, int64_t count) { \
    Run<Name>(in, out, count);                                    \
  }
PENSTOCK_FLOAT_FUNCTIONS(PENSTOCK_FLOATS)
#undef PENSTOCK_FLOATS

}  // namespace HWY_NAMESPACE
}  // namespace penstock::functions
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace penstock::functions {

#define PENSTOCK_FLOATS(Name)                                     \
  HWY_EXPORT(Name##Floats);                                       \
  void Name##Floats(const float* in, float* out, int64_t count) { \
    HWY_DYNAMIC_DISPATCH(Name##Floats)(in, out, count);           \
  }
PENSTOCK_FLOAT_FUNCTIONS(PENSTOCK_FLOATS)
#undef PENSTOCK_FLOATS

}  // namespace penstock::functions

#endif  // HWY_ONCE
