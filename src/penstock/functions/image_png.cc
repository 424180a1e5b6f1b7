#include <png.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/image_formats.h"

namespace penstock::functions {
namespace {

// One file's way through libpng. The library leaves by a jump, so that what it
// touches lives here and not in the frames it jumps over.
struct PngFile {
  png_structp png = nullptr;
  png_infop info = nullptr;
  bool is_writer = false;
  const uint8_t* next = nullptr;
  size_t left = 0;
  std::string made;
  std::string error;
  std::vector<png_bytep> lines;

  PngFile() = default;
  ~PngFile() {
    if (is_writer) {
      png_destroy_write_struct(&png, &info);
    } else {
      png_destroy_read_struct(&png, &info, nullptr);
    }
  }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;
};

[[noreturn]] void OnError(png_structp png, png_const_charp text) {
  static_cast<PngFile*>(png_get_error_ptr(png))->error = text;
  png_longjmp(png, 1);
}
void OnWarning(png_structp, png_const_charp) {}

void Read(png_structp png, png_bytep to, size_t count) {
  auto* file = static_cast<PngFile*>(png_get_io_ptr(png));
  if (count > file->left) {
    png_error(png, "the data ends too early; the file may be truncated");
  }
  std::memcpy(to, file->next, count);
  file->next += count;
  file->left -= count;
}

void Write(png_structp png, png_bytep from, size_t count) {
  static_cast<PngFile*>(png_get_io_ptr(png))
      ->made.append(reinterpret_cast<const char*>(from), count);
}
void Flush(png_structp) {}

// Reads up to the pixels.
bool Open(PngFile& file, std::string_view contents) {
  file.next = reinterpret_cast<const uint8_t*>(contents.data());
  file.left = contents.size();
  file.png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &file, OnError, OnWarning);
  if (file.png == nullptr) return false;
  if (setjmp(png_jmpbuf(file.png))) return false;
  file.info = png_create_info_struct(file.png);
  png_set_read_fn(file.png, &file, Read);
  png_read_info(file.png, file.info);
  return true;
}

absl::Status Failure(const PngFile& file) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected PNG data; ", file.error));
}

// The result's channels if the user does not say.
int OwnChannels(const PngFile& file) {
  if (png_get_color_type(file.png, file.info) != PNG_COLOR_TYPE_PALETTE) {
    return png_get_channels(file.png, file.info);
  }
  return png_get_valid(file.png, file.info, PNG_INFO_tRNS) != 0 ? 4 : 3;
}

// The conversions, in TensorFlow's order.
void Convert(PngFile& file, int channels, int bits) {
  const int color = png_get_color_type(file.png, file.info);
  const int depth = png_get_bit_depth(file.png, file.info);
  const bool has_transparency =
      png_get_valid(file.png, file.info, PNG_INFO_tRNS) != 0;
  const bool has_alpha = (color & PNG_COLOR_MASK_ALPHA) != 0;
  if (channels % 2 == 0) {
    if (has_transparency) {
      png_set_tRNS_to_alpha(file.png);
    } else if (!has_alpha) {
      png_set_add_alpha(file.png, (1U << depth) - 1, PNG_FILLER_AFTER);
    }
  } else if (has_alpha || has_transparency) {
    png_set_strip_alpha(file.png);
  }
  if (depth > 8 && bits <= 8) png_set_strip_16(file.png);
  png_set_packing(file.png);
  png_set_interlace_handling(file.png);
  if (bits > 8) png_set_swap(file.png);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(file.png);
  const bool is_gray = (color & PNG_COLOR_MASK_COLOR) == 0;
  if (is_gray && depth < 8) png_set_expand_gray_1_2_4_to_8(file.png);
  if (channels < 3) {
    if (!is_gray) png_set_rgb_to_gray(file.png, 1, 0.299, 0.587);
  } else if (is_gray) {
    png_set_gray_to_rgb(file.png);
  }
  png_read_update_info(file.png, file.info);
}

bool ReadPixels(PngFile& file, int channels, int bits, size_t row_bytes) {
  if (setjmp(png_jmpbuf(file.png))) return false;
  Convert(file, channels, bits);
  if (png_get_rowbytes(file.png, file.info) > row_bytes) {
    png_error(file.png, "its channels cannot be converted");
  }
  png_read_image(file.png, file.lines.data());
  png_read_end(file.png, nullptr);
  return true;
}

bool WritePixels(PngFile& file, int64_t height, int64_t width, int channels,
                 int bits, int compression) {
  constexpr int kColors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                             PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  file.is_writer = true;
  file.png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, &file, OnError, OnWarning);
  if (file.png == nullptr) return false;
  if (setjmp(png_jmpbuf(file.png))) return false;
  file.info = png_create_info_struct(file.png);
  png_set_write_fn(file.png, &file, Write, Flush);
  if (compression >= 0) png_set_compression_level(file.png, compression);
  png_set_compression_mem_level(file.png, 9);
  png_set_IHDR(file.png, file.info, static_cast<png_uint_32>(width),
               static_cast<png_uint_32>(height), bits, kColors[channels - 1],
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(file.png, file.info);
  if (bits > 8) png_set_swap(file.png);
  png_write_image(file.png, file.lines.data());
  png_write_end(file.png, nullptr);
  return true;
}

}  // namespace

absl::StatusOr<ImageHead> PngHead(std::string_view contents, int channels) {
  PngFile file;
  if (!Open(file, contents)) return Failure(file);
  ImageHead head;
  head.height = png_get_image_height(file.png, file.info);
  head.width = png_get_image_width(file.png, file.info);
  head.channels = channels == 0 ? OwnChannels(file) : channels;
  PENSTOCK_RETURN_IF_ERROR(CheckHead("PNG", head));
  return head;
}

absl::Status ReadPng(std::string_view contents, const ImageHead& head, int bits,
                     void* out) {
  PngFile file;
  if (!Open(file, contents)) return Failure(file);
  const int64_t items = head.width * head.channels;
  const bool is_wide = bits == 16;
  // Files of 8 bits are read as such, and then widened where they lie.
  const bool is_widened =
      is_wide && png_get_bit_depth(file.png, file.info) <= 8;
  const size_t row_bytes = items * (is_wide ? 2 : 1);
  auto* bytes = static_cast<uint8_t*>(out);
  for (int64_t y = 0; y < head.height; ++y) {
    file.lines.push_back(bytes + y * row_bytes);
  }
  if (!ReadPixels(file, head.channels, bits, row_bytes)) return Failure(file);
  if (is_widened) {
    for (int64_t y = 0; y < head.height; ++y) {
      uint8_t* line = bytes + y * row_bytes;
      for (int64_t i = items - 1; i >= 0; --i) {
        line[2 * i + 1] = line[i];
        line[2 * i] = line[2 * i + 1];
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> WritePng(const void* pixels, int64_t height,
                                     int64_t width, int channels, int bits,
                                     int compression) {
  if (height < 1 || width < 1 || height > PNG_USER_HEIGHT_MAX ||
      width > PNG_USER_WIDTH_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("a PNG image has 1 to 1000000 rows and columns; got ",
                     height, " x ", width));
  }
  PngFile file;
  auto* bytes = static_cast<uint8_t*>(const_cast<void*>(pixels));
  for (int64_t y = 0; y < height; ++y) {
    file.lines.push_back(bytes + y * width * channels * (bits / 8));
  }
  if (!WritePixels(file, height, width, channels, bits, compression)) {
    return absl::InternalError(absl::StrCat("cannot write PNG: ", file.error));
  }
  return std::move(file.made);
}

}  // namespace penstock::functions
