// Resampling of images, as tf.image.resize (version 2) defines it: centres of
// pixels at halves, weights outside the image dropped.
//
// Bilinear equals TensorFlow's bit for bit; the other methods within 1e-5 of
// the range of the pixels, since sums are made in another order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/data/dtype.h"
#include "penstock/functions/image_lerp.h"

namespace penstock::functions {

enum class ResizeMethod : uint8_t {
  kBilinear,
  kNearest,
  kBicubic,
  kArea,
  kLanczos3,
  kLanczos5,
  kGaussian,
  kMitchellCubic,
};

// By TensorFlow's name: "bilinear", "nearest", …
absl::StatusOr<ResizeMethod> ParseResizeMethod(std::string_view name);

// Pixels in memory, a part of an image perhaps.
struct PixelView {
  const void* data = nullptr;
  DType dtype = DType::kUint8;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t row_items = 0;  // from one row to the next
};

// Resizes one image after another; tables and scratch memory are kept from one
// to the next. One thread at a time.
class Resizer final {
 public:
  Resizer(ResizeMethod method, bool antialias);

  // `out`: height x width x channels floats. REQUIRES: not kNearest, a dtype of
  // real numbers, no dimension of 0.
  void Resize(const PixelView& from, int64_t height, int64_t width, float* out);
  // The same for kNearest: `out` has items of from.dtype.
  void ResizeNearest(const PixelView& from, int64_t height, int64_t width,
                     void* out);

  // Of one axis: which pixels an output is made of.
  struct Axis {
    int64_t from = 0;
    int64_t to = 0;
    // Bilinear: the two neighbours and the share of the upper.
    std::vector<int32_t> lower;
    std::vector<int32_t> upper;
    std::vector<float> lerp;
    std::vector<RgbPair> pairs;  // of the first outputs
    // Other methods: weights[begin[i] … begin[i + 1]) from pixel start[i] on.
    std::vector<int32_t> start;
    std::vector<int64_t> begin;
    std::vector<float> weights;
  };

 private:
  void Prepare(Axis& axis, int64_t from, int64_t to) const;
  template <typename T>
  void Bilinear(const PixelView& from, float* out);
  template <typename T>
  void Weighted(const PixelView& from, float* out);

  const ResizeMethod method_;
  const bool antialias_;
  bool is_bilinear_;
  Axis y_;
  Axis x_;
  std::vector<float> rows_[2];  // of Bilinear, resized along x
  std::vector<float> sums_;     // of Weighted, resized along y
};

}  // namespace penstock::functions
