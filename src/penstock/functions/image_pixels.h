// Loops over the pixels of images.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "penstock/functions/function.h"
#include "penstock/functions/image_options.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {

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
inline float ToUnit(T value) {
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

// InvalidArgument unless `arg` may hold images of numbers, of that many
// channels if they are given.
absl::Status CheckPixels(std::string_view name, const ArgSpec& arg,
                         std::optional<int64_t> channels);

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

// The same in the images' own dtype T: fill(row, const T* from, dims, T* to).
template <typename Fill>
absl::StatusOr<Column> OwnPixelRows(absl::Span<const Arg> args, int64_t needed,
                                    int64_t channels, EvalContext& context,
                                    Fill&& fill) {
  const DType dtype = args[0].column->dtype();
  return PixelRows(args, dtype, needed, channels, context,
                   [&](int64_t row, const std::byte* data,
                       const ImageDims& dims, std::byte* out) {
                     VisitPixel(dtype, [&](auto item) {
                       using T = decltype(item);
                       fill(row, reinterpret_cast<const T*>(data), dims,
                            reinterpret_cast<T*>(out));
                     });
                   });
}

}  // namespace penstock::functions
