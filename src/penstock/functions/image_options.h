// What image functions have in common: how arguments are read and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/functions/function.h"
#include "penstock/functions/image_jpeg.h"

namespace penstock::functions {

// InvalidArgument unless `arg` is the bytes of one file.
absl::Status CheckContents(std::string_view function, const ArgSpec& arg);

// A first parameter that CheckImages() lets be several images.
inline constexpr Param kImageParam = {
    "image", ParamKind::kTensor, "",
    "height x width x channels, or several of them along a first dimension."};
// The same of functions that work on floats from 0 to 1.
inline constexpr Param kUnitImageParam = {
    "image", ParamKind::kTensor, "",
    "height x width x channels, or several of them along a first dimension. "
    "Floats from 0 to 1; integers stand for them, the largest of their dtype "
    "for 1."};

// height x width x channels.
TensorSpec ImageSpec(DType dtype, std::optional<int64_t> height,
                     std::optional<int64_t> width,
                     std::optional<int64_t> channels);

// The parameters of functions that decode JPEG, and what they say.
std::vector<Param> JpegParams();
absl::StatusOr<JpegOptions> JpegAttrs(const Attrs& attrs);

// The dimensions of an image, or of several: [frames...] x height x width x
// channels, where everything before the last three counts as frames.
struct ImageDims {
  int64_t frames = 1;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  explicit ImageDims(absl::Span<const int64_t> shape);
  int64_t pixels() const { return frames * height * width; }
  int64_t items() const { return pixels() * channels; }
  int64_t frame_items() const { return height * width * channels; }
};

// InvalidArgument unless `arg` may hold images: numbers of rank 3, or of rank 4
// if `may_be_batch`.
absl::Status CheckImages(std::string_view function, const ArgSpec& arg,
                         bool may_be_batch);

// A target of two integers, height and width: both as far as known.
struct PartialSize {
  std::optional<int64_t> height;
  std::optional<int64_t> width;
};
absl::StatusOr<PartialSize> InferSize(std::string_view function,
                                      const ArgSpec& arg);
// Of a row; InvalidArgument unless they are positive and few enough.
struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
};
absl::StatusOr<ImageSize> ReadSize(const Arg& arg, int64_t row);

}  // namespace penstock::functions
