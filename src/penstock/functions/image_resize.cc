#include "penstock/functions/image_resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/functions/promote.h"

namespace penstock::functions {
namespace {

// ---- Where the weights come from

// The position in the input of an output's centre, less a half: a pixel's
// number.
float HalfPixel(int64_t i, float scale) {
  return (static_cast<float>(i) + 0.5F) * scale - 0.5F;
}

float ScaleOf(int64_t from, int64_t to) {
  return static_cast<float>(from) / static_cast<float>(to);
}

void BilinearTable(Resizer::Axis& axis) {
  const float scale = ScaleOf(axis.from, axis.to);
  axis.lower.resize(axis.to);
  axis.upper.resize(axis.to);
  axis.lerp.resize(axis.to);
  for (int64_t i = 0; i < axis.to; ++i) {
    const float at = HalfPixel(i, scale);
    const float floor = std::floor(at);
    axis.lower[i] = std::max(static_cast<int32_t>(floor), 0);
    axis.upper[i] = static_cast<int32_t>(
        std::min(static_cast<int64_t>(std::ceil(at)), axis.from - 1));
    axis.lerp[i] = at - floor;
  }
}

// Outputs two by two, as far as 8 bytes of input that begin with the lower
// pixel lie inside the row.
void PairUp(Resizer::Axis& axis) {
  for (int64_t i = 0; i + 2 <= axis.to; i += 2) {
    if (3 * axis.lower[i + 1] + 8 > 3 * axis.from) return;
    RgbPair pair = {};
    for (int k = 0; k < 2; ++k) {
      const int32_t lower = axis.lower[i + k];
      const int32_t step = axis.upper[i + k] - lower;  // 0 or 1
      pair.offset[k] = 3 * lower;
      for (int c = 0; c < 3; ++c) {
        uint8_t* to = pair.shuffle + 8 * k + 2 * c;
        to[0] = static_cast<uint8_t>(8 * k + 3 * step + c);
        to[1] = static_cast<uint8_t>(8 * k + c);
      }
      std::fill_n(pair.lerp + 4 * k, 4, axis.lerp[i + k]);
    }
    axis.pairs.push_back(pair);
  }
}

// Scales the weights of the last output to a sum of 1.
void Normalize(Resizer::Axis& axis) {
  const auto begin = axis.weights.begin() + axis.begin.back();
  float sum = 0;
  for (auto at = begin; at != axis.weights.end(); ++at) sum += *at;
  if (std::abs(sum) < 1000 * std::numeric_limits<float>::min()) {
    std::fill(begin, axis.weights.end(), 0.0F);
    return;
  }
  const float factor = 1 / sum;
  for (auto at = begin; at != axis.weights.end(); ++at) *at *= factor;
}

// TensorFlow's bicubic looks its weights up in a table of 1024 steps.
void BicubicTable(Resizer::Axis& axis) {
  constexpr int kSteps = 1024;
  static const std::array<float, (kSteps + 1)* 2>* const table = [] {
    auto* made = new std::array<float, (kSteps + 1) * 2>;
    constexpr double kA = -0.5;
    for (int i = 0; i <= kSteps; ++i) {
      float x = static_cast<float>(i * 1.0 / kSteps);
      (*made)[2 * i] =
          static_cast<float>(((kA + 2) * x - (kA + 3)) * x * x + 1);
      x += 1;
      (*made)[2 * i + 1] =
          static_cast<float>(((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA);
    }
    return made;
  }();
  const float scale = ScaleOf(axis.from, axis.to);
  for (int64_t i = 0; i < axis.to; ++i) {
    const float at = HalfPixel(i, scale);
    const auto floor = static_cast<int64_t>(std::floor(at));
    const auto offset =
        static_cast<int>(std::lrint((at - static_cast<float>(floor)) * kSteps));
    const float weights[] = {(*table)[2 * offset + 1], (*table)[2 * offset],
                             (*table)[2 * (kSteps - offset)],
                             (*table)[2 * (kSteps - offset) + 1]};
    axis.start.push_back(
        static_cast<int32_t>(std::clamp<int64_t>(floor - 1, 0, axis.from - 1)));
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t pixel = floor - 1 + k;
      if (pixel >= 0 && pixel < axis.from) axis.weights.push_back(weights[k]);
    }
    Normalize(axis);
    axis.begin.push_back(static_cast<int64_t>(axis.weights.size()));
  }
}

void AreaTable(Resizer::Axis& axis) {
  const float scale = ScaleOf(axis.from, axis.to);
  for (int64_t i = 0; i < axis.to; ++i) {
    const float begin = static_cast<float>(i) * scale;
    const float end = static_cast<float>(i + 1) * scale;
    const auto first =
        std::min(static_cast<int64_t>(std::floor(begin)), axis.from - 1);
    const auto last = static_cast<int64_t>(std::ceil(end));
    axis.start.push_back(static_cast<int32_t>(first));
    for (int64_t k = first; k < last; ++k) {
      const auto low = static_cast<float>(k);
      const float part = std::min(low + 1, end) - std::max(low, begin);
      // Rounding may lead beyond the last pixel, which then counts more.
      if (k >= axis.from) {
        axis.weights.back() += part / scale;
      } else {
        axis.weights.push_back(part / scale);
      }
    }
    axis.begin.push_back(static_cast<int64_t>(axis.weights.size()));
  }
}

float Lanczos(float x, float radius) {
  constexpr float kPi = 3.14159265359F;
  if (x > radius) return 0;
  if (x <= 1e-3F) return 1;
  return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) /
         (kPi * kPi * x * x);
}

struct Kernel {
  float radius;
  float (*weight)(float x);  // x >= 0
};

Kernel KernelOf(ResizeMethod method) {
  switch (method) {
    case ResizeMethod::kLanczos3:
      return {3, [](float x) { return Lanczos(x, 3); }};
    case ResizeMethod::kLanczos5:
      return {5, [](float x) { return Lanczos(x, 5); }};
    case ResizeMethod::kGaussian:
      return {1.5F, [](float x) {
                return x >= 1.5F ? 0.0F
                                 : static_cast<float>(std::exp(-x * x / 0.5));
              }};
    case ResizeMethod::kMitchellCubic:
      return {2, [](float x) {
                if (x >= 2) return 0.0F;
                if (x >= 1) {
                  return (((-7.0F / 18) * x + 2) * x - 10.0F / 3) * x +
                         16.0F / 9;
                }
                return (((7.0F / 6) * x - 2) * x) * x + 8.0F / 9;
              }};
    case ResizeMethod::kBicubic:
      return {2, [](float x) {
                if (x >= 2) return 0.0F;
                if (x >= 1) return ((-0.5F * x + 2.5F) * x - 4) * x + 2;
                return ((1.5F * x - 2.5F) * x) * x + 1;
              }};
    default:  // bilinear
      return {1, [](float x) { return x < 1 ? 1 - x : 0.0F; }};
  }
}

void KernelTable(Resizer::Axis& axis, const Kernel& kernel, bool antialias) {
  const float inverse =
      1 / (static_cast<float>(axis.to) / static_cast<float>(axis.from));
  const float spread = antialias ? std::max(inverse, 1.0F) : 1.0F;
  const float reach = kernel.radius * spread;
  for (int64_t i = 0; i < axis.to; ++i) {
    const float at = (static_cast<float>(i) + 0.5F) * inverse;
    const int64_t last_pixel = axis.from - 1;
    const int64_t first = std::clamp<int64_t>(
        static_cast<int64_t>(std::ceil(at - reach - 0.5F)), 0, last_pixel);
    const int64_t last = std::clamp<int64_t>(
        static_cast<int64_t>(std::floor(at + reach - 0.5F)), 0, last_pixel);
    axis.start.push_back(static_cast<int32_t>(first));
    for (int64_t k = first; k <= last; ++k) {
      const float distance = static_cast<float>(k) + 0.5F - at;
      axis.weights.push_back(kernel.weight(std::abs(distance / spread)));
    }
    Normalize(axis);
    axis.begin.push_back(static_cast<int64_t>(axis.weights.size()));
  }
}

// ---- Loops

template <typename T>
float AsFloat(T value) {
  return static_cast<float>(value);
}

// One row along x: out[i] between pixels lower[i] and upper[i].
template <typename T>
void LerpRow(const T* row, const Resizer::Axis& x, int64_t begin,
             int64_t channels, float* out) {
  for (int64_t i = begin; i < x.to; ++i) {
    const T* lower = row + x.lower[i] * channels;
    const T* upper = row + x.upper[i] * channels;
    const float lerp = x.lerp[i];
    for (int64_t c = 0; c < channels; ++c) {
      const float left = AsFloat(lower[c]);
      out[i * channels + c] = left + (AsFloat(upper[c]) - left) * lerp;
    }
  }
}

}  // namespace

absl::StatusOr<ResizeMethod> ParseResizeMethod(std::string_view name) {
  constexpr std::pair<std::string_view, ResizeMethod> kMethods[] = {
      {"bilinear", ResizeMethod::kBilinear},
      {"nearest", ResizeMethod::kNearest},
      {"bicubic", ResizeMethod::kBicubic},
      {"area", ResizeMethod::kArea},
      {"lanczos3", ResizeMethod::kLanczos3},
      {"lanczos5", ResizeMethod::kLanczos5},
      {"gaussian", ResizeMethod::kGaussian},
      {"mitchellcubic", ResizeMethod::kMitchellCubic},
  };
  for (const auto& [known, method] : kMethods) {
    if (known == name) return method;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "method must be bilinear, nearest, bicubic, area, lanczos3, lanczos5, "
      "gaussian or mitchellcubic; got ",
      Text(name)));
}

Resizer::Resizer(ResizeMethod method, bool antialias)
    : method_(method),
      antialias_(antialias),
      is_bilinear_(method == ResizeMethod::kBilinear && !antialias) {}

void Resizer::Prepare(Axis& axis, int64_t from, int64_t to) const {
  if (axis.from == from && axis.to == to) return;
  axis = Axis{};
  axis.from = from;
  axis.to = to;
  if (is_bilinear_) {
    BilinearTable(axis);
    PairUp(axis);
    return;
  }
  axis.begin.push_back(0);
  if (method_ == ResizeMethod::kArea) return AreaTable(axis);
  if (method_ == ResizeMethod::kBicubic && !antialias_) {
    return BicubicTable(axis);
  }
  KernelTable(axis, KernelOf(method_), antialias_);
}

template <typename T>
void Resizer::Bilinear(const PixelView& from, float* out) {
  const T* pixels = static_cast<const T*>(from.data);
  const int64_t count = x_.to * from.channels;
  int64_t held[2] = {-1, -1};
  for (std::vector<float>& row : rows_) row.resize(count + 4);
  // The given row of the input, resized along x; rows come in order.
  auto row_at = [&](int64_t y, int64_t other) -> const float* {
    for (int k = 0; k < 2; ++k) {
      if (held[k] == y) return rows_[k].data();
    }
    const int k = held[0] == other ? 1 : 0;
    held[k] = y;
    const T* row = pixels + y * from.row_items;
    float* to = rows_[k].data();
    int64_t done = 0;
    if constexpr (std::is_same_v<T, uint8_t>) {
      if (from.channels == 3) {
        LerpRgbPairs(row, x_.pairs, to);
        done = 2 * static_cast<int64_t>(x_.pairs.size());
      }
    }
    if (from.channels == 3) {
      LerpRow(row, x_, done, 3, to);
    } else if (from.channels == 1) {
      LerpRow(row, x_, done, 1, to);
    } else {
      LerpRow(row, x_, done, from.channels, to);
    }
    return to;
  };
  for (int64_t y = 0; y < y_.to; ++y, out += count) {
    const int64_t lower = y_.lower[y];
    const int64_t upper = y_.upper[y];
    const float* top = row_at(lower, upper);
    const float* bottom = row_at(upper, lower);
    LerpRows(top, bottom, y_.lerp[y], count, out);
  }
}

template <typename T>
void Resizer::Weighted(const PixelView& from, float* out) {
  const T* pixels = static_cast<const T*>(from.data);
  const int64_t channels = from.channels;
  const int64_t count = from.width * channels;
  sums_.resize(count);
  for (int64_t y = 0; y < y_.to; ++y) {
    std::fill(sums_.begin(), sums_.end(), 0.0F);
    const T* row = pixels + y_.start[y] * from.row_items;
    for (int64_t k = y_.begin[y]; k < y_.begin[y + 1];
         ++k, row += from.row_items) {
      const float weight = y_.weights[k];
      float* sums = sums_.data();
      for (int64_t i = 0; i < count; ++i) sums[i] += AsFloat(row[i]) * weight;
    }
    for (int64_t x = 0; x < x_.to; ++x, out += channels) {
      const float* sums = sums_.data() + x_.start[x] * channels;
      const float* weights = x_.weights.data() + x_.begin[x];
      const int64_t taps = x_.begin[x + 1] - x_.begin[x];
      for (int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (int64_t k = 0; k < taps; ++k) {
          sum += sums[k * channels + c] * weights[k];
        }
        out[c] = sum;
      }
    }
  }
}

void Resizer::Resize(const PixelView& from, int64_t height, int64_t width,
                     float* out) {
  Prepare(y_, from.height, height);
  Prepare(x_, from.width, width);
  VisitDType(from.dtype, [&](auto item) {
    using T = decltype(item);
    if constexpr (std::is_constructible_v<float, T>) {
      if (is_bilinear_) {
        Bilinear<T>(from, out);
      } else {
        Weighted<T>(from, out);
      }
    }
  });
}

void Resizer::ResizeNearest(const PixelView& from, int64_t height,
                            int64_t width, void* out) {
  const size_t item_bytes = ItemSize(from.dtype);
  const size_t pixel_bytes = item_bytes * from.channels;
  const auto* bytes = static_cast<const std::byte*>(from.data);
  auto* to = static_cast<std::byte*>(out);
  auto nearest = [](int64_t i, int64_t own, int64_t wanted) {
    const float at = (static_cast<float>(i) + 0.5F) * ScaleOf(own, wanted);
    return std::clamp<int64_t>(static_cast<int64_t>(std::floor(at)), 0,
                               own - 1);
  };
  std::vector<int64_t> columns(width);
  for (int64_t x = 0; x < width; ++x) {
    columns[x] =
        nearest(x, from.width, width) * static_cast<int64_t>(pixel_bytes);
  }
  for (int64_t y = 0; y < height; ++y) {
    const std::byte* row = bytes + nearest(y, from.height, height) *
                                       from.row_items *
                                       static_cast<int64_t>(item_bytes);
    for (int64_t x = 0; x < width; ++x, to += pixel_bytes) {
      std::memcpy(to, row + columns[x], pixel_bytes);
    }
  }
}

}  // namespace penstock::functions
