#include "penstock/functions/image_pillow_sums.h"

#include <algorithm>
#include <cstring>

// Highway reads this file once for each kind of processor. Rows are short:
// vectors of 64 bytes make them no faster.
#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "penstock/functions/image_pillow_sums.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace penstock::functions {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int32_t kHalf = 1 << (kPillowBits - 1);

// Sums of parts may wrap around; what they make together does not.
inline uint8_t Rounded(uint32_t high, uint32_t low) {
  const auto sum = static_cast<int32_t>((high << kPillowLowBits) + low + kHalf);
  return static_cast<uint8_t>(std::clamp(sum >> kPillowBits, 0, 255));
}

// An output of one channel; inputs are `step` bytes apart. The last weight may
// be of an input that is not there, and 0.
inline uint8_t SumOne(const uint8_t* from, int64_t step,
                      const PillowPair* weights, int64_t pairs) {
  uint32_t high = 0;
  uint32_t low = 0;
  for (int64_t i = 0; i < pairs; ++i, from += 2 * step) {
    high += static_cast<uint32_t>(from[0] * weights[i].high[0]);
    low += static_cast<uint32_t>(from[0] * weights[i].low[0]);
    if ((weights[i].high[1] | weights[i].low[1]) == 0) continue;
    high += static_cast<uint32_t>(from[step] * weights[i].high[1]);
    low += static_cast<uint32_t>(from[step] * weights[i].low[1]);
  }
  return Rounded(high, low);
}

void SumGray(const uint8_t* row, const PillowRun* runs,
             const PillowPair* weights, int64_t outputs, uint8_t* out) {
  for (int64_t i = 0; i < outputs; ++i) {
    out[i] =
        SumOne(row + runs[i].start, 1, weights + runs[i].first, runs[i].pairs);
  }
}

#if HWY_TARGET == HWY_SCALAR

void SumRgb(const uint8_t* const rows[kPillowRows], const PillowRun* runs,
            const PillowPair* weights, int64_t outputs,
            uint8_t* const out[kPillowRows]) {
  for (int r = 0; r < kPillowRows; ++r) {
    for (int64_t i = 0; i < outputs; ++i) {
      for (int c = 0; c < 3; ++c) {
        out[r][3 * i + c] = SumOne(rows[r] + 3 * runs[i].start + c, 3,
                                   weights + runs[i].first, runs[i].pairs);
      }
    }
  }
}

void SumRows(const uint8_t* rows, int64_t row_bytes, const PillowRun& run,
             const PillowPair* weights, int64_t bytes, uint8_t* out) {
  for (int64_t i = 0; i < bytes; ++i) {
    out[i] = SumOne(rows + i, row_bytes, weights + run.first, run.pairs);
  }
}

#else

// Sums of products of shorts, two by two.
template <typename Ints>
class PairSums final {
 public:
  HWY_INLINE PairSums() : even_(hn::Zero(Ints())), odd_(hn::Zero(Ints())) {}

  template <typename Shorts>
  HWY_INLINE void Add(Shorts a, Shorts b) {
    even_ = hn::ReorderWidenMulAccumulate(Ints(), a, b, even_, odd_);
  }
  HWY_INLINE auto Get() const {
    return hn::RearrangeToOddPlusEven(even_, odd_);
  }

 private:
  hn::VFromD<Ints> even_;
  hn::VFromD<Ints> odd_;  // unused by some processors
};

inline int32_t Word(const int16_t* pair) {
  int32_t word;
  std::memcpy(&word, pair, sizeof(word));
  return word;
}

// Vectors hold the pixels of one row, or of two if they have 32 bytes.
template <typename Bytes>
void SumRgbBy(Bytes bytes, const uint8_t* const rows[kPillowRows],
              const PillowRun* runs, const PillowPair* weights, int64_t outputs,
              uint8_t* const out[kPillowRows]) {
  const hn::Repartition<int16_t, Bytes> shorts;
  const hn::Repartition<int32_t, Bytes> ints;
  const hn::FixedTag<uint8_t, 16> block;
  constexpr int kAtOnce = static_cast<int>(hn::MaxLanes(Bytes()) / 16);
  constexpr int kVectors = kPillowRows / kAtOnce;
  constexpr uint8_t kNone = 0x80;
  // Of two pixels: shorts of the one and the other, by channel.
  alignas(16) constexpr uint8_t kByChannel[16] = {
      0, kNone, 3, kNone, 1,     kNone, 4,     kNone,
      2, kNone, 5, kNone, kNone, kNone, kNone, kNone};
  const auto by_channel = hn::LoadDup128(bytes, kByChannel);
  auto load = [&](int vector, int64_t at) {
    if constexpr (kAtOnce == 2) {
      return hn::Combine(bytes, hn::LoadU(block, rows[2 * vector + 1] + at),
                         hn::LoadU(block, rows[2 * vector] + at));
    } else {
      return hn::LoadU(block, rows[vector] + at);
    }
  };
  for (int64_t i = 0; i < outputs; ++i) {
    const PillowPair* weight = weights + runs[i].first;
    const PillowPair* const end = weight + runs[i].pairs;
    PairSums<decltype(ints)> high[kVectors];
    PairSums<decltype(ints)> low[kVectors];
    for (int64_t at = int64_t{3} * runs[i].start; weight < end;
         at += 6, ++weight) {
      const auto high_weights =
          hn::BitCast(shorts, hn::Set(ints, Word(weight->high)));
      const auto low_weights =
          hn::BitCast(shorts, hn::Set(ints, Word(weight->low)));
      for (int v = 0; v < kVectors; ++v) {
        const auto pixels = hn::BitCast(
            shorts, hn::TableLookupBytesOr0(load(v, at), by_channel));
        high[v].Add(pixels, high_weights);
        low[v].Add(pixels, low_weights);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      const auto sum = hn::Add(
          hn::Add(hn::ShiftLeft<kPillowLowBits>(high[v].Get()), low[v].Get()),
          hn::Set(ints, kHalf));
      const hn::Rebind<uint8_t, decltype(ints)> small;
      uint8_t made[4 * kAtOnce];
      hn::StoreU(hn::DemoteTo(small, hn::ShiftRight<kPillowBits>(sum)), small,
                 made);
      for (int r = 0; r < kAtOnce; ++r) {
        std::memcpy(out[kAtOnce * v + r] + 3 * i, made + 4 * r, 4);
      }
    }
  }
}

void SumRgb(const uint8_t* const rows[kPillowRows], const PillowRun* runs,
            const PillowPair* weights, int64_t outputs,
            uint8_t* const out[kPillowRows]) {
#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE
  const hn::FixedTag<uint8_t, 32> bytes;
#else
  const hn::FixedTag<uint8_t, 16> bytes;
#endif
  SumRgbBy(bytes, rows, runs, weights, outputs, out);
}

void SumRows(const uint8_t* rows, int64_t row_bytes, const PillowRun& run,
             const PillowPair* weights, int64_t bytes, uint8_t* out) {
  const hn::CappedTag<int32_t, 8> ints;
  const hn::Repartition<int16_t, decltype(ints)> shorts;
  const hn::Rebind<uint8_t, decltype(ints)> small;
  const auto lanes = static_cast<int64_t>(hn::Lanes(ints));
  weights += run.first;
  auto sum_at = [&](int64_t at) {
    const uint8_t* from = rows + at;
    PairSums<decltype(ints)> high;
    PairSums<decltype(ints)> low;
    for (int32_t i = 0; i < run.pairs; ++i, from += 2 * row_bytes) {
      const auto upper = hn::PromoteTo(ints, hn::LoadU(small, from));
      const auto lower =
          hn::PromoteTo(ints, hn::LoadU(small, from + row_bytes));
      const auto both =
          hn::BitCast(shorts, hn::Or(upper, hn::ShiftLeft<16>(lower)));
      const auto high_weights =
          hn::BitCast(shorts, hn::Set(ints, Word(weights[i].high)));
      const auto low_weights =
          hn::BitCast(shorts, hn::Set(ints, Word(weights[i].low)));
      high.Add(both, high_weights);
      low.Add(both, low_weights);
    }
    const auto sum =
        hn::Add(hn::Add(hn::ShiftLeft<kPillowLowBits>(high.Get()), low.Get()),
                hn::Set(ints, kHalf));
    return hn::DemoteTo(small, hn::ShiftRight<kPillowBits>(sum));
  };
  int64_t at = 0;
  for (; at + lanes <= bytes; at += lanes) {
    hn::StoreU(sum_at(at), small, out + at);
  }
  if (at < bytes) {
    uint8_t rest[8];
    hn::StoreU(sum_at(at), small, rest);
    std::memcpy(out + at, rest, bytes - at);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace penstock::functions
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace penstock::functions {

HWY_EXPORT(SumRgb);
HWY_EXPORT(SumGray);
HWY_EXPORT(SumRows);

void SumRgb(const uint8_t* const rows[kPillowRows], const PillowRun* runs,
            const PillowPair* weights, int64_t outputs,
            uint8_t* const out[kPillowRows]) {
  HWY_DYNAMIC_DISPATCH(SumRgb)(rows, runs, weights, outputs, out);
}

void SumGray(const uint8_t* row, const PillowRun* runs,
             const PillowPair* weights, int64_t outputs, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(SumGray)(row, runs, weights, outputs, out);
}

void SumRows(const uint8_t* rows, int64_t row_bytes, const PillowRun& run,
             const PillowPair* weights, int64_t bytes, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(SumRows)(rows, row_bytes, run, weights, bytes, out);
}

}  // namespace penstock::functions

#endif  // HWY_ONCE
