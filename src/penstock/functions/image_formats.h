// PNG, BMP, GIF and WebP as pixels, with TensorFlow's results; PNG written.
//
// Each format has two steps, so that limits are checked before memory is taken:
// what the header says, then the pixels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::functions {

enum class ImageFormat : uint8_t { kUnknown, kJpeg, kPng, kGif, kBmp, kWebp };

// By the first bytes alone.
ImageFormat FormatOf(std::string_view contents);

struct ImageHead {
  int64_t frames = 1;
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;
};

// InvalidArgument unless there are pixels, and fewer items than kMaxImageItems.
absl::Status CheckHead(const char* format, const ImageHead& head);

// `channels`: 0 (the file's own), 1 (gray), 2 (gray, alpha), 3 or 4.
// `bits`: 8 or 16 an item; `out` holds uint8_t or uint16_t accordingly.
absl::StatusOr<ImageHead> PngHead(std::string_view contents, int channels);
absl::Status ReadPng(std::string_view contents, const ImageHead& head, int bits,
                     void* out);
// `pixels`: height x width x channels (1 to 4) items of 8 or 16 bits.
absl::StatusOr<std::string> WritePng(const void* pixels, int64_t height,
                                     int64_t width, int channels, int bits,
                                     int compression);

// `channels`: 0 or the file's own: 1, 3 or 4.
absl::StatusOr<ImageHead> BmpHead(std::string_view contents, int channels);
absl::Status ReadBmp(std::string_view contents, const ImageHead& head,
                     uint8_t* out);

// All frames, each over the one before it; 3 channels. A head with fewer frames
// than the file has may be read.
absl::StatusOr<ImageHead> GifHead(std::string_view contents);
absl::Status ReadGif(std::string_view contents, const ImageHead& head,
                     uint8_t* out);

// `channels`: 0 (the file's own), 3 or 4. The first frame of an animation.
absl::StatusOr<ImageHead> WebpHead(std::string_view contents, int channels);
absl::Status ReadWebp(std::string_view contents, const ImageHead& head,
                      uint8_t* out);

}  // namespace penstock::functions
