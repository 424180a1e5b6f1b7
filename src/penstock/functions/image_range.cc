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
#include "penstock/functions/groups.h"
#include "penstock/functions/image_options.h"
#include "penstock/functions/image_pixels.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

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

std::vector<Function> ImageRangeFunctions() {
  return {
      {.name = "image.per_image_standardization",
       .params = {kImageParam},
       .doc = "Each image with mean 0 and variance 1 (flat ones: less), as "
              "float32.",
       .example = ">>> image = np.array([[[1.0], [3.0]]])\n"
                  ">>> ps.image.per_image_standardization(image)[:, :, 0]\n"
                  "array([[-1.,  1.]], dtype=float32)",
       .infer = InferStandard,
       .eval = EvalStandard},
      {.name = "image.normalize",
       .params = {kImageParam,
                  {"mean", ParamKind::kFloats, "",
                   "Of each channel, in the image's own units: of uint8, "
                   "from 0 to 255."},
                  {"std", ParamKind::kFloats, "",
                   "The standard deviation of each channel, in the same "
                   "units."}},
       .doc = "(image - mean) / std, channel by channel, as float32.",
       .example = ">>> image = np.array([[[10, 20, 30]]], np.uint8)\n"
                  ">>> ps.image.normalize(image, (0, 10, 20), (10, 10, 10))\n"
                  "array([[[1., 1., 1.]]], dtype=float32)",
       .infer = InferNormalize,
       .eval = EvalNormalize},
      {.name = "image.convert_image_dtype",
       .params = {kUnitImageParam,
                  {"dtype", ParamKind::kDType, "", "That of the result."},
                  {"saturate", ParamKind::kBool, "False",
                   "Integers out of the result's range become its ends "
                   "instead of wrapping around; floats always do."}},
       .doc = "An image in another dtype, scaled so that its range stays.",
       .example = ">>> image = np.array([[[0, 255]]], np.uint8)\n"
                  ">>> ps.image.convert_image_dtype(image, ps.float32)\n"
                  "array([[[0., 1.]]], dtype=float32)",
       .infer = InferConvert,
       .eval = EvalConvert},
  };
}

}  // namespace penstock::functions
