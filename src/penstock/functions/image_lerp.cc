#include "penstock/functions/image_lerp.h"

#include <cstring>

// Highway reads this file once for each kind of processor. Rows are short and
// lie anywhere: vectors of 64 bytes make them no faster.
#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/functions/image_lerp.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace penstock::functions {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

void LerpRgbPairs(const uint8_t* row, const std::vector<RgbPair>& pairs,
                  float* out) {
  for (const RgbPair& pair : pairs) {
    for (int k = 0; k < 2; ++k) {
      const uint8_t* const pixels = row + pair.offset[k];
      for (int c = 0; c < 3; ++c) {
        const uint8_t* const from = pair.shuffle + 8 * k + 2 * c;
        const float left = pixels[from[1] - 8 * k];
        const float right = pixels[from[0] - 8 * k];
        *out++ = left + (right - left) * pair.lerp[4 * k];
      }
    }
  }
}

#else

inline uint64_t Load8(const uint8_t* at) {
  uint64_t bytes;
  std::memcpy(&bytes, at, sizeof(bytes));
  return bytes;
}

void LerpRgbPairs(const uint8_t* row, const std::vector<RgbPair>& pairs,
                  float* out) {
  const hn::FixedTag<uint64_t, 2> words;
  const hn::FixedTag<uint8_t, 16> bytes;
  const hn::FixedTag<uint16_t, 8> shorts;
  const hn::FixedTag<int16_t, 8> signed_shorts;
  const hn::FixedTag<int32_t, 4> ints;
  const hn::FixedTag<float, 4> floats;
  const auto low_byte = hn::Set(shorts, 0xff);
  for (const RgbPair& pair : pairs) {
    const auto pixels =
        hn::InterleaveLower(hn::Set(words, Load8(row + pair.offset[0])),
                            hn::Set(words, Load8(row + pair.offset[1])));
    // Each short: the right pixel's byte, and above it the left one's.
    const auto both = hn::BitCast(
        shorts, hn::TableLookupBytes(hn::BitCast(bytes, pixels),
                                     hn::LoadU(bytes, pair.shuffle)));
    const auto left = hn::ShiftRight<8>(both);
    const auto step = hn::Sub(hn::And(both, low_byte), left);
    const auto signed_left = hn::BitCast(signed_shorts, left);
    const auto signed_step = hn::BitCast(signed_shorts, step);
#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE
    const hn::FixedTag<int32_t, 8> more_ints;
    const hn::FixedTag<float, 8> more_floats;
    const auto steps =
        hn::ConvertTo(more_floats, hn::PromoteTo(more_ints, signed_step));
    const auto made = hn::Add(
        hn::ConvertTo(more_floats, hn::PromoteTo(more_ints, signed_left)),
        hn::Mul(steps, hn::LoadU(more_floats, pair.lerp)));
    hn::StoreU(hn::LowerHalf(floats, made), floats, out);
    hn::StoreU(hn::UpperHalf(floats, made), floats, out + 3);
#else
    const hn::FixedTag<int16_t, 4> half;
    auto lerp = [&](auto left_half, auto step_half, const float* shares) {
      return hn::Add(
          hn::ConvertTo(floats, hn::PromoteTo(ints, left_half)),
          hn::Mul(hn::ConvertTo(floats, hn::PromoteTo(ints, step_half)),
                  hn::LoadU(floats, shares)));
    };
    hn::StoreU(lerp(hn::LowerHalf(half, signed_left),
                    hn::LowerHalf(half, signed_step), pair.lerp),
               floats, out);
    hn::StoreU(lerp(hn::UpperHalf(half, signed_left),
                    hn::UpperHalf(half, signed_step), pair.lerp + 4),
               floats, out + 3);
#endif
    out += 6;
  }
}

#endif

void LerpRows(const float* top, const float* bottom, float share, int64_t count,
              float* out) {
  const hn::ScalableTag<float> floats;
  const auto lanes = static_cast<int64_t>(hn::Lanes(floats));
  const auto shares = hn::Set(floats, share);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto above = hn::LoadU(floats, top + i);
    const auto below = hn::LoadU(floats, bottom + i);
    hn::StoreU(hn::Add(above, hn::Mul(hn::Sub(below, above), shares)), floats,
               out + i);
  }
  for (; i < count; ++i) out[i] = top[i] + (bottom[i] - top[i]) * share;
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::functions
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace penstock::functions {

HWY_EXPORT(LerpRgbPairs);
HWY_EXPORT(LerpRows);

void LerpRgbPairs(const uint8_t* row, const std::vector<RgbPair>& pairs,
                  float* out) {
  HWY_DYNAMIC_DISPATCH(LerpRgbPairs)(row, pairs, out);
}

void LerpRows(const float* top, const float* bottom, float share, int64_t count,
              float* out) {
  HWY_DYNAMIC_DISPATCH(LerpRows)(top, bottom, share, count, out);
}

}  // namespace penstock::functions

#endif  // HWY_ONCE
