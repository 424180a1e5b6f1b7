#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/cast.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/image_options.h"
#include "penstock/functions/image_pixels.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

absl::Status CheckScalar(std::string_view name, const ArgSpec& arg) {
  if ((IsFloat(arg.spec.dtype) || IsInteger(arg.spec.dtype)) &&
      (!arg.spec.shape.has_rank() || arg.spec.shape.rank() == 0)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Text(name), " needs one number; got ", arg.spec.ToString()));
}

// The number of a row.
class Scalar final {
 public:
  explicit Scalar(const Arg& arg)
      : column_(Cast(*arg.column, DType::kFloat32)), arg_(arg) {}
  float operator[](int64_t row) const {
    return *column_.Row<float>(RowIndex(arg_, row));
  }

 private:
  Column column_;
  Arg arg_;
};

// ---- Hue, saturation, value; all from 0 to 1.

struct Hsv {
  float h, s, v;
};

Hsv ToHsv(float r, float g, float b) {
  const float most = std::max({r, g, b});
  const float least = std::min({r, g, b});
  const float range = most - least;
  Hsv made = {0, most > 0 ? range / most : 0, most};
  if (range > 0) {
    const float scale = 1 / (6 * range);
    if (r == most) {
      made.h = scale * (g - b);
    } else if (g == most) {
      made.h = scale * (b - r) + 2.0F / 6;
    } else {
      made.h = scale * (r - g) + 4.0F / 6;
    }
    if (made.h < 0) made.h += 1;
  }
  return made;
}

void ToRgb(const Hsv& hsv, float* rgb) {
  auto clamp = [](float x) { return std::min(std::max(x, 0.0F), 1.0F); };
  const float dh = hsv.h * 6;
  const float parts[] = {clamp(std::abs(dh - 3) - 1),
                         clamp(2 - std::abs(dh - 2)),
                         clamp(2 - std::abs(dh - 4))};
  for (int i = 0; i < 3; ++i) {
    rgb[i] = (1 - hsv.s + hsv.s * parts[i]) * hsv.v;
  }
}

// Rows of three channels, each pixel as floats from 0 to 1 through
// change_of(row), a function of float* rgb.
template <typename ChangeOf>
absl::StatusOr<Column> ChangePixels(absl::Span<const Arg> args,
                                    EvalContext& context,
                                    ChangeOf&& change_of) {
  return OwnPixelRows(
      args, 3, 0, context,
      [&]<typename T>(int64_t row, const T* from, const ImageDims& dims,
                      T* to) {
        const auto change = change_of(row);
        const int64_t pixels = dims.pixels();
        for (int64_t i = 0; i < pixels; ++i, from += 3, to += 3) {
          float rgb[3] = {ToUnit(from[0]), ToUnit(from[1]), ToUnit(from[2])};
          change(rgb);
          for (int c = 0; c < 3; ++c) to[c] = FromUnit<T>(rgb[c]);
        }
      });
}

// `channels`: any, if not given.
absl::StatusOr<TensorSpec> InferAdjust(std::string_view name,
                                       std::optional<int64_t> channels,
                                       absl::Span<const ArgSpec> args) {
  PENSTOCK_RETURN_IF_ERROR(CheckPixels(name, args[0], channels));
  PENSTOCK_RETURN_IF_ERROR(CheckScalar(name, args[1]));
  return args[0].spec;
}

absl::StatusOr<Column> EvalBrightness(absl::Span<const Arg> args, const Attrs&,
                                      const TensorSpec&, EvalContext& context) {
  const Scalar delta(args[1]);
  return OwnPixelRows(args, 0, 0, context,
                      [&]<typename T>(int64_t row, const T* from,
                                      const ImageDims& dims, T* to) {
                        const float add = delta[row];
                        const int64_t count = dims.items();
                        for (int64_t i = 0; i < count; ++i) {
                          to[i] = FromUnit<T>(ToUnit(from[i]) + add);
                        }
                      });
}

absl::StatusOr<Column> EvalContrast(absl::Span<const Arg> args, const Attrs&,
                                    const TensorSpec&, EvalContext& context) {
  const Scalar factor(args[1]);
  return OwnPixelRows(
      args, 0, 0, context,
      [&]<typename T>(int64_t row, const T* from, const ImageDims& dims,
                      T* to) {
        const float scale = factor[row];
        const int64_t pixels = dims.height * dims.width;
        const int64_t count = dims.frame_items();
        std::vector<double> means(dims.channels);
        for (int64_t frame = 0; frame < dims.frames;
             ++frame, from += count, to += count) {
          std::fill(means.begin(), means.end(), 0.0);
          for (int64_t i = 0; i < count; i += dims.channels) {
            for (int64_t c = 0; c < dims.channels; ++c) {
              means[c] += ToUnit(from[i + c]);
            }
          }
          for (int64_t i = 0; i < count; i += dims.channels) {
            for (int64_t c = 0; c < dims.channels; ++c) {
              const auto mean =
                  static_cast<float>(means[c] / static_cast<double>(pixels));
              to[i + c] =
                  FromUnit<T>((ToUnit(from[i + c]) - mean) * scale + mean);
            }
          }
        }
      });
}

absl::StatusOr<Column> EvalSaturation(absl::Span<const Arg> args, const Attrs&,
                                      const TensorSpec&, EvalContext& context) {
  const Scalar factor(args[1]);
  return ChangePixels(args, context, [&](int64_t row) {
    return [scale = factor[row]](float* rgb) {
      Hsv hsv = ToHsv(rgb[0], rgb[1], rgb[2]);
      hsv.s = std::min(1.0F, std::max(0.0F, hsv.s * scale));
      ToRgb(hsv, rgb);
    };
  });
}

absl::StatusOr<Column> EvalHue(absl::Span<const Arg> args, const Attrs&,
                               const TensorSpec&, EvalContext& context) {
  const Scalar delta(args[1]);
  return ChangePixels(args, context, [&](int64_t row) {
    return [add = delta[row]](float* rgb) {
      Hsv hsv = ToHsv(rgb[0], rgb[1], rgb[2]);
      hsv.h = std::fmod(hsv.h + add, 1.0F);
      if (hsv.h < 0) hsv.h += 1;
      ToRgb(hsv, rgb);
    };
  });
}

// ---- From one kind of image to another

absl::StatusOr<TensorSpec> InferHsv(std::string_view name,
                                    absl::Span<const ArgSpec> args) {
  PENSTOCK_RETURN_IF_ERROR(CheckPixels(name, args[0], 3));
  if (!IsFloat(args[0].spec.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Text(name), " needs floats from 0 to 1; got ", args[0].spec.ToString(),
        ". Use convert_image_dtype first."));
  }
  return args[0].spec;
}

absl::StatusOr<Column> EvalToHsv(absl::Span<const Arg> args, const Attrs&,
                                 const TensorSpec&, EvalContext& context) {
  return ChangePixels(args, context, [](int64_t) {
    return [](float* x) {
      const Hsv hsv = ToHsv(x[0], x[1], x[2]);
      x[0] = hsv.h, x[1] = hsv.s, x[2] = hsv.v;
    };
  });
}

absl::StatusOr<Column> EvalFromHsv(absl::Span<const Arg> args, const Attrs&,
                                   const TensorSpec&, EvalContext& context) {
  return ChangePixels(args, context, [](int64_t) {
    return [](float* x) { ToRgb({x[0], x[1], x[2]}, x); };
  });
}

// `from` channels become `to`.
absl::StatusOr<TensorSpec> InferChannels(std::string_view name, int64_t from,
                                         int64_t to,
                                         absl::Span<const ArgSpec> args) {
  PENSTOCK_RETURN_IF_ERROR(CheckPixels(name, args[0], from));
  PartialShape::Dims dims = args[0].spec.shape.dims();
  dims.back() = to;
  return TensorSpec{args[0].spec.dtype, PartialShape(std::move(dims))};
}

absl::StatusOr<Column> EvalGray(absl::Span<const Arg> args, const Attrs&,
                                const TensorSpec&, EvalContext& context) {
  return OwnPixelRows(
      args, 3, 1, context,
      []<typename T>(int64_t, const T* from, const ImageDims& dims, T* to) {
        const int64_t pixels = dims.pixels();
        for (int64_t i = 0; i < pixels; ++i, from += 3) {
          to[i] = FromUnit<T>(ToUnit(from[0]) * 0.2989F +
                              ToUnit(from[1]) * 0.5870F +
                              ToUnit(from[2]) * 0.1140F);
        }
      });
}

absl::StatusOr<Column> EvalColours(absl::Span<const Arg> args, const Attrs&,
                                   const TensorSpec&, EvalContext& context) {
  return OwnPixelRows(
      args, 1, 3, context,
      []<typename T>(int64_t, const T* from, const ImageDims& dims, T* to) {
        for (int64_t i = 0; i < dims.pixels(); ++i) {
          to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = from[i];
        }
      });
}

}  // namespace

std::vector<Function> ImageColorFunctions() {
  const Param& image = kUnitImageParam;
  const Param colours = {"image", ParamKind::kTensor, "",
                         "height x width x 3 of floats from 0 to 1, or several "
                         "of them along a first dimension."};
  auto factor = [](std::string_view name, std::string_view doc) -> Param {
    return {name, ParamKind::kTensor, "", doc};
  };
  return {
      {.name = "image.adjust_brightness",
       .params = {image, factor("delta", "What is added, from -1 to 1.")},
       .doc = "An image with a number added to each value, in its own dtype.",
       .example = ">>> image = np.full((1, 1, 1), 100, np.uint8)\n"
                  ">>> int(ps.image.adjust_brightness(image, 0.1)[0, 0, 0])\n"
                  "125",
       .infer =
           [](absl::Span<const ArgSpec> args, const Attrs&) {
             return InferAdjust("adjust_brightness", std::nullopt, args);
           },
       .eval = EvalBrightness},
      {.name = "image.adjust_contrast",
       .params = {image, factor("contrast_factor", "1 changes nothing.")},
       .doc = "An image with its distances from each channel's mean scaled.",
       .example = ">>> image = np.array([[[0.25], [0.75]]])\n"
                  ">>> ps.image.adjust_contrast(image, 2.0)[:, :, 0]\n"
                  "array([[0., 1.]])",
       .infer =
           [](absl::Span<const ArgSpec> args, const Attrs&) {
             return InferAdjust("adjust_contrast", std::nullopt, args);
           },
       .eval = EvalContrast},
      {.name = "image.adjust_saturation",
       .params = {image, factor("saturation_factor", "1 changes nothing.")},
       .doc = "An RGB image with its saturation scaled.",
       .example = ">>> image = np.array([[[1.0, 0.5, 0.0]]])\n"
                  ">>> ps.image.adjust_saturation(image, 0.0)\n"
                  "array([[[1., 1., 1.]]])",
       .infer =
           [](absl::Span<const ArgSpec> args, const Attrs&) {
             return InferAdjust("adjust_saturation", 3, args);
           },
       .eval = EvalSaturation},
      {.name = "image.adjust_hue",
       .params = {image,
                  factor("delta", "From -1 to 1, which are whole turns.")},
       .doc = "An RGB image with its hues turned.",
       .example = ">>> image = np.array([[[1.0, 0.0, 0.0]]])\n"
                  ">>> ps.image.adjust_hue(image, 0.5)\n"
                  "array([[[0., 1., 1.]]])",
       .infer = [](absl::Span<const ArgSpec> args,
                   const Attrs&) { return InferAdjust("adjust_hue", 3, args); },
       .eval = EvalHue},
      {.name = "image.rgb_to_hsv",
       .params = {colours},
       .doc = "Hue, saturation and value, from 0 to 1, of RGB colours.",
       .example =
           ">>> ps.image.rgb_to_hsv(np.array([[[0.0, 0.5, 0.0]]]))[0, 0, "
           "1:]\narray([1. , 0.5])",
       .infer = [](absl::Span<const ArgSpec> args,
                   const Attrs&) { return InferHsv("rgb_to_hsv", args); },
       .eval = EvalToHsv},
      {.name = "image.hsv_to_rgb",
       .params = {colours},
       .doc = "RGB colours of hue, saturation and value.",
       .example = ">>> ps.image.hsv_to_rgb(np.array([[[0.0, 1.0, 0.5]]]))\n"
                  "array([[[0.5, 0. , 0. ]]])",
       .infer = [](absl::Span<const ArgSpec> args,
                   const Attrs&) { return InferHsv("hsv_to_rgb", args); },
       .eval = EvalFromHsv},
      {.name = "image.rgb_to_grayscale",
       .params = {image},
       .doc = "An RGB image as one channel of brightness, in its own dtype.",
       .example =
           ">>> ps.image.rgb_to_grayscale(np.ones((2, 3, 3), np.uint8)).shape\n"
           "(2, 3, 1)",
       .infer =
           [](absl::Span<const ArgSpec> args, const Attrs&) {
             return InferChannels("rgb_to_grayscale", 3, 1, args);
           },
       .eval = EvalGray},
      {.name = "image.grayscale_to_rgb",
       .params = {{"image", ParamKind::kTensor, "",
                   "height x width x 1, or several of them along a first "
                   "dimension."}},
       .doc = "One channel as three equal ones.",
       .example = ">>> ps.image.grayscale_to_rgb(np.array([[[7]]]))\n"
                  "array([[[7, 7, 7]]])",
       .infer =
           [](absl::Span<const ArgSpec> args, const Attrs&) {
             return InferChannels("grayscale_to_rgb", 1, 3, args);
           },
       .eval = EvalColours},
  };
}

}  // namespace penstock::functions
