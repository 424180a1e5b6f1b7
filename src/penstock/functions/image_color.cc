#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/cast.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/image_options.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

template <typename T>
inline constexpr bool kIsFloat =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> ||
    std::is_same_v<T, Bfloat16>;
// Dtypes that images have.
template <typename T>
inline constexpr bool kIsPixel = kIsFloat<T> || (std::is_integral_v<T> &&
                                                 !std::is_same_v<T, bool>);

// Integers stand for 0 to 1 by their range; floats stand for themselves.
template <typename T>
float ToUnit(T value) {
  if constexpr (kIsFloat<T>) {
    return static_cast<float>(value);
  } else {
    constexpr auto kScale = static_cast<float>(
        1.0 / static_cast<double>(std::numeric_limits<T>::max()));
    return static_cast<float>(value) * kScale;
  }
}

// The integer that a float stands for, within the dtype's range; NaN gives 0.
template <typename T>
T FromUnit(float value) {
  if constexpr (kIsFloat<T>) {
    return static_cast<T>(value);
  } else {
    constexpr double kMost = static_cast<double>(std::numeric_limits<T>::max());
    constexpr double kLeast =
        static_cast<double>(std::numeric_limits<T>::min());
    const float scaled = value * static_cast<float>(kMost + 0.5);
    if (!(scaled > kLeast)) {
      return scaled <= kLeast ? std::numeric_limits<T>::min() : T{0};
    }
    if (scaled >= kMost) return std::numeric_limits<T>::max();
    return static_cast<T>(scaled);
  }
}

template <typename F>
void VisitPixel(DType dtype, F&& f) {
  VisitDType(dtype, [&](auto item) {
    if constexpr (kIsPixel<decltype(item)>) f(item);
  });
}

absl::Status CheckPixels(std::string_view name, const ArgSpec& arg,
                         std::optional<int64_t> channels) {
  PENSTOCK_RETURN_IF_ERROR(CheckImages(name, arg, /*may_be_batch=*/true));
  const std::optional<int64_t> last = arg.spec.shape.dims().back();
  if (arg.spec.dtype != DType::kBool &&
      (!channels || !last || *last == *channels)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Text(name), " needs numbers",
                   channels ? absl::StrCat(" of ", *channels, " channels") : "",
                   "; got ", arg.spec.ToString()));
}

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

// Rows of the images' shapes, the last dimension `channels` if that is given.
// REQUIRES of the caller: `needed` channels, 0 for any.
// fill(row, data, dims, out) makes a row.
template <typename Fill>
absl::StatusOr<Column> PixelRows(absl::Span<const Arg> args, DType dtype,
                                 int64_t needed, int64_t channels,
                                 EvalContext& context, Fill&& fill) {
  const Column& images = *args[0].column;
  return MakeRows(
      dtype, images.rank(), ResultRows(args, context), HasOneShape(args[0]), {},
      context,
      [&](int64_t row, int64_t* dims) {
        const absl::Span<const int64_t> shape =
            images.RowShape(RowIndex(args[0], row));
        std::copy(shape.begin(), shape.end(), dims);
        if (needed != 0 && shape.back() != needed) {
          return absl::InvalidArgumentError(
              absl::StrCat("expected an image of ", needed,
                           " channels; got shape ", ToString(shape)));
        }
        if (channels != 0) dims[shape.size() - 1] = channels;
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t>, std::byte* out) {
        const int64_t from = RowIndex(args[0], row);
        fill(row, images.RowData(from), ImageDims(images.RowShape(from)), out);
      });
}

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

// Each pixel as floats from 0 to 1 through change(float* rgb).
template <typename Change>
void ChangePixels(DType dtype, const std::byte* data, const ImageDims& dims,
                  std::byte* out, Change&& change) {
  VisitPixel(dtype, [&](auto item) {
    using T = decltype(item);
    const T* from = reinterpret_cast<const T*>(data);
    T* to = reinterpret_cast<T*>(out);
    const int64_t pixels = dims.pixels();
    for (int64_t i = 0; i < pixels; ++i, from += 3, to += 3) {
      float rgb[3] = {ToUnit(from[0]), ToUnit(from[1]), ToUnit(from[2])};
      change(rgb);
      for (int c = 0; c < 3; ++c) to[c] = FromUnit<T>(rgb[c]);
    }
  });
}

template <int kChannels>
absl::StatusOr<TensorSpec> InferAdjust(absl::Span<const ArgSpec> args,
                                       const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(
      CheckPixels("the function", args[0],
                  kChannels == 0 ? std::optional<int64_t>() : kChannels));
  PENSTOCK_RETURN_IF_ERROR(CheckScalar("the function", args[1]));
  return args[0].spec;
}

absl::StatusOr<Column> EvalBrightness(absl::Span<const Arg> args, const Attrs&,
                                      const TensorSpec& result,
                                      EvalContext& context) {
  const Scalar delta(args[1]);
  return PixelRows(args, result.dtype, 0, 0, context,
                   [&](int64_t row, const std::byte* data,
                       const ImageDims& dims, std::byte* out) {
                     const float add = delta[row];
                     VisitPixel(result.dtype, [&](auto item) {
                       using T = decltype(item);
                       const T* from = reinterpret_cast<const T*>(data);
                       T* to = reinterpret_cast<T*>(out);
                       const int64_t count = dims.items();
                       for (int64_t i = 0; i < count; ++i) {
                         to[i] = FromUnit<T>(ToUnit(from[i]) + add);
                       }
                     });
                   });
}

absl::StatusOr<Column> EvalContrast(absl::Span<const Arg> args, const Attrs&,
                                    const TensorSpec& result,
                                    EvalContext& context) {
  const Scalar factor(args[1]);
  return PixelRows(
      args, result.dtype, 0, 0, context,
      [&](int64_t row, const std::byte* data, const ImageDims& dims,
          std::byte* out) {
        const float scale = factor[row];
        VisitPixel(result.dtype, [&](auto item) {
          using T = decltype(item);
          const T* from = reinterpret_cast<const T*>(data);
          T* to = reinterpret_cast<T*>(out);
          const int64_t pixels = dims.height * dims.width;
          const int64_t count = pixels * dims.channels;
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
      });
}

absl::StatusOr<Column> EvalSaturation(absl::Span<const Arg> args, const Attrs&,
                                      const TensorSpec& result,
                                      EvalContext& context) {
  const Scalar factor(args[1]);
  return PixelRows(
      args, result.dtype, 3, 0, context,
      [&](int64_t row, const std::byte* data, const ImageDims& dims,
          std::byte* out) {
        const float scale = factor[row];
        ChangePixels(result.dtype, data, dims, out, [&](float* rgb) {
          Hsv hsv = ToHsv(rgb[0], rgb[1], rgb[2]);
          hsv.s = std::min(1.0F, std::max(0.0F, hsv.s * scale));
          ToRgb(hsv, rgb);
        });
      });
}

absl::StatusOr<Column> EvalHue(absl::Span<const Arg> args, const Attrs&,
                               const TensorSpec& result, EvalContext& context) {
  const Scalar delta(args[1]);
  return PixelRows(args, result.dtype, 3, 0, context,
                   [&](int64_t row, const std::byte* data,
                       const ImageDims& dims, std::byte* out) {
                     const float add = delta[row];
                     ChangePixels(result.dtype, data, dims, out,
                                  [&](float* rgb) {
                                    Hsv hsv = ToHsv(rgb[0], rgb[1], rgb[2]);
                                    hsv.h = std::fmod(hsv.h + add, 1.0F);
                                    if (hsv.h < 0) hsv.h += 1;
                                    ToRgb(hsv, rgb);
                                  });
                   });
}

// ---- From one kind of image to another

absl::StatusOr<TensorSpec> InferHsv(absl::Span<const ArgSpec> args,
                                    const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(CheckPixels("the function", args[0], 3));
  if (!IsFloat(args[0].spec.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "colours must be floats from 0 to 1; got ", args[0].spec.ToString(),
        ". Use convert_image_dtype first."));
  }
  return args[0].spec;
}

template <bool kToHsv>
absl::StatusOr<Column> EvalHsv(absl::Span<const Arg> args, const Attrs&,
                               const TensorSpec& result, EvalContext& context) {
  return PixelRows(args, result.dtype, 3, 0, context,
                   [&](int64_t, const std::byte* data, const ImageDims& dims,
                       std::byte* out) {
                     ChangePixels(result.dtype, data, dims, out, [&](float* x) {
                       if constexpr (kToHsv) {
                         const Hsv hsv = ToHsv(x[0], x[1], x[2]);
                         x[0] = hsv.h, x[1] = hsv.s, x[2] = hsv.v;
                       } else {
                         ToRgb({x[0], x[1], x[2]}, x);
                       }
                     });
                   });
}

absl::StatusOr<TensorSpec> InferGray(absl::Span<const ArgSpec> args,
                                     const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(CheckPixels("rgb_to_grayscale", args[0], 3));
  PartialShape::Dims dims = args[0].spec.shape.dims();
  dims.back() = 1;
  return TensorSpec{args[0].spec.dtype, PartialShape(std::move(dims))};
}

absl::StatusOr<Column> EvalGray(absl::Span<const Arg> args, const Attrs&,
                                const TensorSpec& result,
                                EvalContext& context) {
  return PixelRows(args, result.dtype, 3, 1, context,
                   [&](int64_t, const std::byte* data, const ImageDims& dims,
                       std::byte* out) {
                     VisitPixel(result.dtype, [&](auto item) {
                       using T = decltype(item);
                       const T* from = reinterpret_cast<const T*>(data);
                       T* to = reinterpret_cast<T*>(out);
                       const int64_t pixels = dims.pixels();
                       for (int64_t i = 0; i < pixels; ++i, from += 3) {
                         to[i] = FromUnit<T>(ToUnit(from[0]) * 0.2989F +
                                             ToUnit(from[1]) * 0.5870F +
                                             ToUnit(from[2]) * 0.1140F);
                       }
                     });
                   });
}

absl::StatusOr<TensorSpec> InferToRgb(absl::Span<const ArgSpec> args,
                                      const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(CheckPixels("grayscale_to_rgb", args[0], 1));
  PartialShape::Dims dims = args[0].spec.shape.dims();
  dims.back() = 3;
  return TensorSpec{args[0].spec.dtype, PartialShape(std::move(dims))};
}

absl::StatusOr<Column> EvalToRgb(absl::Span<const Arg> args, const Attrs&,
                                 const TensorSpec& result,
                                 EvalContext& context) {
  return PixelRows(args, result.dtype, 1, 3, context,
                   [&](int64_t, const std::byte* data, const ImageDims& dims,
                       std::byte* out) {
                     VisitPixel(result.dtype, [&](auto item) {
                       using T = decltype(item);
                       const T* from = reinterpret_cast<const T*>(data);
                       T* to = reinterpret_cast<T*>(out);
                       for (int64_t i = 0; i < dims.pixels(); ++i) {
                         to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = from[i];
                       }
                     });
                   });
}

// ---- Ranges and dtypes

absl::StatusOr<TensorSpec> InferStandard(absl::Span<const ArgSpec> args,
                                         const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(
      CheckPixels("per_image_standardization", args[0], {}));
  return TensorSpec{DType::kFloat32, args[0].spec.shape};
}

absl::StatusOr<Column> EvalStandard(absl::Span<const Arg> args, const Attrs&,
                                    const TensorSpec&, EvalContext& context) {
  const DType dtype = args[0].column->dtype();
  return PixelRows(
      args, DType::kFloat32, 0, 0, context,
      [&](int64_t, const std::byte* data, const ImageDims& dims,
          std::byte* out) {
        VisitPixel(dtype, [&](auto item) {
          using T = decltype(item);
          const T* from = reinterpret_cast<const T*>(data);
          float* to = reinterpret_cast<float*>(out);
          const int64_t count = dims.height * dims.width * dims.channels;
          for (int64_t frame = 0; frame < dims.frames;
               ++frame, from += count, to += count) {
            double sum = 0;
            for (int64_t i = 0; i < count; ++i) {
              sum += static_cast<float>(from[i]);
            }
            const double mean = sum / static_cast<double>(count);
            double squares = 0;
            for (int64_t i = 0; i < count; ++i) {
              const double x = static_cast<float>(from[i]) - mean;
              squares += x * x;
            }
            const auto number = static_cast<double>(count);
            const double deviation =
                std::max(std::sqrt(squares / number), 1 / std::sqrt(number));
            const auto offset = static_cast<float>(mean);
            const auto divisor = static_cast<float>(deviation);
            for (int64_t i = 0; i < count; ++i) {
              to[i] = (static_cast<float>(from[i]) - offset) / divisor;
            }
          }
        });
      });
}

absl::StatusOr<std::vector<float>> FloatsAttr(const Attrs& attrs,
                                              const char* name) {
  std::vector<float> values;
  const auto at = attrs.find(name);
  if (at != attrs.end()) {
    if (const auto* x = std::get_if<std::vector<double>>(&at->second)) {
      values.assign(x->begin(), x->end());
    } else if (const auto* i = std::get_if<std::vector<int64_t>>(&at->second)) {
      values.assign(i->begin(), i->end());
    }
  }
  if (!values.empty()) return values;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be floats, one for each channel"));
}

absl::StatusOr<TensorSpec> InferNormalize(absl::Span<const ArgSpec> args,
                                          const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<float> mean,
                            FloatsAttr(attrs, "mean"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<float> std,
                            FloatsAttr(attrs, "std"));
  PENSTOCK_RETURN_IF_ERROR(
      CheckPixels("normalize", args[0], static_cast<int64_t>(mean.size())));
  if (std.size() != mean.size() ||
      std::find(std.begin(), std.end(), 0.0F) != std.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("std must be ", mean.size(),
                     " floats that are not 0; got ", absl::StrJoin(std, ", ")));
  }
  return TensorSpec{DType::kFloat32, args[0].spec.shape};
}

// Eight pixels at a time, so that the compiler sees a loop of whole vectors.
template <typename T>
void NormalizeItems(const T* from, int64_t count, const float* mean,
                    const float* factor, int64_t period, float* to) {
  int64_t i = 0;
  for (; i + period <= count; i += period) {
    for (int64_t j = 0; j < period; ++j) {
      to[i + j] = (static_cast<float>(from[i + j]) - mean[j]) * factor[j];
    }
  }
  for (int64_t j = 0; i + j < count; ++j) {
    to[i + j] = (static_cast<float>(from[i + j]) - mean[j]) * factor[j];
  }
}

absl::StatusOr<Column> EvalNormalize(absl::Span<const Arg> args,
                                     const Attrs& attrs, const TensorSpec&,
                                     EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<float> mean,
                            FloatsAttr(attrs, "mean"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<float> std,
                            FloatsAttr(attrs, "std"));
  const DType dtype = args[0].column->dtype();
  const auto channels = static_cast<int64_t>(mean.size());
  std::vector<float> means;
  std::vector<float> factors;
  for (int i = 0; i < 8; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      means.push_back(mean[c]);
      factors.push_back(1 / std[c]);
    }
  }
  return PixelRows(args, DType::kFloat32, channels, 0, context,
                   [&](int64_t, const std::byte* data, const ImageDims& dims,
                       std::byte* out) {
                     VisitPixel(dtype, [&](auto item) {
                       using T = decltype(item);
                       NormalizeItems(reinterpret_cast<const T*>(data),
                                      dims.items(), means.data(),
                                      factors.data(), 8 * channels,
                                      reinterpret_cast<float*>(out));
                     });
                   });
}

absl::StatusOr<TensorSpec> InferConvert(absl::Span<const ArgSpec> args,
                                        const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const DType dtype,
                            DTypeAttr(attrs, "dtype", DType::kFloat32));
  PENSTOCK_RETURN_IF_ERROR(BoolAttr(attrs, "saturate", false).status());
  for (DType each : {dtype, args[0].spec.dtype}) {
    if (!IsFloat(each) && !IsInteger(each)) {
      return absl::InvalidArgumentError(
          absl::StrCat("convert_image_dtype is for integers and floats; got ",
                       args[0].spec.ToString(), " and ", Text(Name(dtype))));
    }
  }
  return TensorSpec{dtype, args[0].spec.shape};
}

// A float as an integer: truncated, or within its range.
template <typename To, typename Real>
To Truncated(Real value) {
  constexpr Real kMost = static_cast<Real>(std::numeric_limits<To>::max());
  constexpr Real kLeast = static_cast<Real>(std::numeric_limits<To>::min());
  if (!(value > kLeast)) {
    return value <= kLeast ? std::numeric_limits<To>::min() : To{0};
  }
  if (value >= kMost) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

template <typename From, typename To>
To Converted(From value, bool saturate) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (kIsFloat<From>) {
    using Real =
        std::conditional_t<std::is_same_v<From, double>, double, float>;
    const auto x = static_cast<Real>(value);
    if constexpr (kIsFloat<To>) {
      if constexpr (std::is_same_v<To, double>) {
        return static_cast<double>(x);
      } else {
        return static_cast<To>(static_cast<float>(x));
      }
    } else {
      constexpr Real kScale = static_cast<Real>(
          static_cast<double>(std::numeric_limits<To>::max()) + 0.5);
      return Truncated<To>(x * kScale);
    }
  } else if constexpr (kIsFloat<To>) {
    using Real = std::conditional_t<std::is_same_v<To, double>, double, float>;
    constexpr Real kScale = static_cast<Real>(
        1.0 / static_cast<double>(std::numeric_limits<From>::max()));
    return static_cast<To>(static_cast<Real>(value) * kScale);
  } else {
    constexpr auto kIn =
        static_cast<uint64_t>(std::numeric_limits<From>::max());
    constexpr auto kOut = static_cast<uint64_t>(std::numeric_limits<To>::max());
    if constexpr (kIn > kOut) {
      // Both are one less than a power of 2.
      constexpr int kBits =
          std::numeric_limits<From>::digits - std::numeric_limits<To>::digits;
      const From shifted = static_cast<From>(value >> kBits);
      if (saturate) {
        return std::cmp_less(shifted, std::numeric_limits<To>::min())
                   ? std::numeric_limits<To>::min()
                   : static_cast<To>(shifted);
      }
      return static_cast<To>(shifted);
    } else {
      constexpr int kBits =
          std::numeric_limits<To>::digits - std::numeric_limits<From>::digits;
      To wide = static_cast<To>(value);
      if (saturate && std::cmp_less(value, std::numeric_limits<To>::min())) {
        wide = std::numeric_limits<To>::min();
      }
      return static_cast<To>(static_cast<uint64_t>(wide) << kBits);
    }
  }
}

absl::StatusOr<Column> EvalConvert(absl::Span<const Arg> args,
                                   const Attrs& attrs, const TensorSpec& result,
                                   EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const bool saturate,
                            BoolAttr(attrs, "saturate", false));
  const Column& x = *args[0].column;
  return MakeRows(
      result.dtype, x.rank(), ResultRows(args, context), HasOneShape(args[0]),
      {}, context,
      [&](int64_t row, int64_t* dims) {
        const absl::Span<const int64_t> shape = x.RowShape(row);
        std::copy(shape.begin(), shape.end(), dims);
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        const int64_t count = NumItems(shape);
        VisitPixel(x.dtype(), [&](auto in) {
          VisitPixel(result.dtype, [&](auto made) {
            using From = decltype(in);
            using To = decltype(made);
            const From* from = x.Row<From>(row);
            To* to = reinterpret_cast<To*>(out);
            for (int64_t i = 0; i < count; ++i) {
              to[i] = Converted<From, To>(from[i], saturate);
            }
          });
        });
      });
}

}  // namespace

std::vector<Function> ImageColorFunctions() {
  const Param image = {"image", ParamKind::kTensor, "",
                       "height x width x channels, or several of them along a "
                       "first dimension. Integers stand for 0 to 1."};
  auto factor = [](std::string_view name, std::string_view doc) -> Param {
    return {name, ParamKind::kTensor, "", doc};
  };
  return {
      {.name = "image.adjust_brightness",
       .params = {image, factor("delta", "What is added, from -1 to 1.")},
       .doc = "An image with a number added, in its own dtype.",
       .example = ">>> image = np.full((1, 1, 1), 100, np.uint8)\n"
                  ">>> int(ps.image.adjust_brightness(image, 0.1)[0, 0, 0])\n"
                  "125",
       .infer = InferAdjust<0>,
       .eval = EvalBrightness},
      {.name = "image.adjust_contrast",
       .params = {image, factor("contrast_factor", "1 changes nothing.")},
       .doc = "An image with its distances from each channel's mean scaled.",
       .example = ">>> image = np.array([[[0.25], [0.75]]])\n"
                  ">>> ps.image.adjust_contrast(image, 2.0)[:, :, 0]\n"
                  "array([[0., 1.]])",
       .infer = InferAdjust<0>,
       .eval = EvalContrast},
      {.name = "image.adjust_saturation",
       .params = {image, factor("saturation_factor", "1 changes nothing.")},
       .doc = "An RGB image with its saturation scaled.",
       .example = ">>> image = np.array([[[1.0, 0.5, 0.0]]])\n"
                  ">>> ps.image.adjust_saturation(image, 0.0)\n"
                  "array([[[1., 1., 1.]]])",
       .infer = InferAdjust<3>,
       .eval = EvalSaturation},
      {.name = "image.adjust_hue",
       .params = {image,
                  factor("delta", "From -1 to 1, which are whole turns.")},
       .doc = "An RGB image with its hues turned.",
       .example = ">>> image = np.array([[[1.0, 0.0, 0.0]]])\n"
                  ">>> ps.image.adjust_hue(image, 0.5)\n"
                  "array([[[0., 1., 1.]]])",
       .infer = InferAdjust<3>,
       .eval = EvalHue},
      {.name = "image.rgb_to_hsv",
       .params = {image},
       .doc = "Hue, saturation and value of floats from 0 to 1.",
       .example =
           ">>> ps.image.rgb_to_hsv(np.array([[[0.0, 0.5, 0.0]]]))[0, 0, "
           "1:]\narray([1. , 0.5])",
       .infer = InferHsv,
       .eval = EvalHsv<true>},
      {.name = "image.hsv_to_rgb",
       .params = {image},
       .doc = "Colours of hue, saturation and value from 0 to 1.",
       .example = ">>> ps.image.hsv_to_rgb(np.array([[[0.0, 1.0, 0.5]]]))\n"
                  "array([[[0.5, 0. , 0. ]]])",
       .infer = InferHsv,
       .eval = EvalHsv<false>},
      {.name = "image.rgb_to_grayscale",
       .params = {image},
       .doc = "An RGB image as one channel.",
       .example =
           ">>> ps.image.rgb_to_grayscale(np.ones((2, 3, 3), np.uint8)).shape\n"
           "(2, 3, 1)",
       .infer = InferGray,
       .eval = EvalGray},
      {.name = "image.grayscale_to_rgb",
       .params = {image},
       .doc = "One channel as three equal ones.",
       .example = ">>> ps.image.grayscale_to_rgb(np.array([[[7]]]))\n"
                  "array([[[7, 7, 7]]])",
       .infer = InferToRgb,
       .eval = EvalToRgb},
      {.name = "image.per_image_standardization",
       .params = {image},
       .doc = "Each image with mean 0 and variance 1, as float32.",
       .example = ">>> image = np.array([[[1.0], [3.0]]])\n"
                  ">>> ps.image.per_image_standardization(image)[:, :, 0]\n"
                  "array([[-1.,  1.]], dtype=float32)",
       .infer = InferStandard,
       .eval = EvalStandard},
      {.name = "image.normalize",
       .params = {image,
                  {"mean", ParamKind::kFloats, "",
                   "Of each channel, in the image's own units."},
                  {"std", ParamKind::kFloats, "",
                   "The standard deviation of each channel."}},
       .doc = "(image - mean) / std, channel by channel, as float32.",
       .example = ">>> image = np.array([[[10, 20, 30]]], np.uint8)\n"
                  ">>> ps.image.normalize(image, (0, 10, 20), (10, 10, 10))\n"
                  "array([[[1., 1., 1.]]], dtype=float32)",
       .infer = InferNormalize,
       .eval = EvalNormalize},
      {.name = "image.convert_image_dtype",
       .params = {image,
                  {"dtype", ParamKind::kDType, "", "That of the result."},
                  {"saturate", ParamKind::kBool, "False",
                   "Keeps integers that would be out of range at its ends; "
                   "floats always are."}},
       .doc = "An image in another dtype, scaled so that its range stays.",
       .example = ">>> image = np.array([[[0, 255]]], np.uint8)\n"
                  ">>> ps.image.convert_image_dtype(image, ps.float32)\n"
                  "array([[[0., 1.]]], dtype=float32)",
       .infer = InferConvert,
       .eval = EvalConvert},
  };
}

}  // namespace penstock::functions
