// JPEG by libjpeg-turbo, with the settings and the corner cases of TensorFlow:
// equal bytes in, equal pixels out.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/functions/image_jpeg_entropy.h"

// clang-format off
#include <cstdio>     // which the next one needs
#include <jpeglib.h>
// clang-format on

namespace penstock::functions {

// Pixels times channels of one decoded image stay below this: what a header
// claims is not memory that it may have.
inline constexpr int64_t kMaxImageItems = int64_t{1} << 29;

struct JpegOptions {
  int channels = 0;          // 1 or 3; 0 means the file's own, CMYK becoming 3
  int ratio = 1;             // 1, 2, 4 or 8: width and height are divided by it
  bool is_accurate = false;  // the slower of the two integer transforms
  bool fancy_upscaling = true;
  bool try_recover_truncated = false;
  // Huffman decoding is libjpeg's own: what ours is compared with.
  bool is_plain = false;
  // The part of the rows that must be there; those missing are black.
  float acceptable_fraction = 1;
};

struct CropWindow {
  int64_t y = 0;
  int64_t x = 0;
  int64_t height = 0;
  int64_t width = 0;
};

// InvalidArgument unless the window has pixels and lies in the image.
absl::Status CheckCropWindow(const CropWindow& crop, int64_t height,
                             int64_t width);

// Where rows go that are read a few at a time.
class JpegRows {
 public:
  virtual ~JpegRows() = default;
  // The image begins, perhaps once more.
  virtual void Begin() = 0;
  // For the next rows of the image, as many as it likes; at least one.
  virtual absl::Span<uint8_t* const> places() = 0;
  // These were written, or those that the image still had.
  virtual void Commit() = 0;
};

// Reads one file after another. One thread at a time.
class JpegReader final {
 public:
  JpegReader();
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // Reads the header; `contents` must live until the image is read. After an
  // error, or to begin another file, call it again.
  absl::Status Open(std::string_view contents, const JpegOptions& options);
  // Of the result. REQUIRES: Open() was OK.
  int64_t height() const { return info_.output_height; }
  int64_t width() const { return info_.output_width; }
  int channels() const { return channels_; }
  // The file's own, without ratio or channels.
  int64_t file_height() const { return info_.image_height; }
  int64_t file_width() const { return info_.image_width; }
  int file_channels() const { return info_.num_components; }
  // Whether the last image that was read was decoded by JpegEntropy.
  bool has_own_entropy() const { return has_own_entropy_; }
  // After Open(): another ratio than the one it was given.
  absl::Status SetRatio(int ratio);

  // The whole image: height x width x channels.
  absl::Status Read(uint8_t* out);
  // The same, to where `rows` says. Beyond what Read() refuses, an error if
  // anything was unusual, down to the end of the file: a warning of libjpeg's,
  // scans that are missing, or something else than the end after the last row.
  // REQUIRES: no CMYK.
  absl::Status ReadStrictly(JpegRows& rows);
  // A part of it, without decoding the rest where that can be avoided.
  // `is_exact`: pixels are those of the whole image. Otherwise, as in
  // TensorFlow, colours of the last column may differ a little, since its right
  // neighbours were not decoded.
  absl::Status ReadCrop(const CropWindow& crop, bool is_exact, uint8_t* out);

 private:
  // Makes libjpeg's part anew.
  void Begin();
  // Read() and ReadCrop(), once: what they give up is read again, plainly.
  template <typename ReadOnce>
  absl::Status ReadTwice(ReadOnce&& read_once);
  absl::Status ReadWhole(uint8_t* out);
  absl::Status ReadWindow(const CropWindow& crop, bool is_exact, uint8_t* out);
  absl::Status ReadInto(JpegRows& rows);
  // Whether what libjpeg makes smooth is known in full. REQUIRES: Start().
  bool HasAllScans() const;
  // Whether there is something to decode.
  bool Start();
  absl::Status Failure(const char* when);
  absl::Status CheckSize();
  // Rows [begin, end) of the file, of which `offset` pixels are left out on the
  // left. Gives how many there were.
  int64_t ReadRows(int64_t rows, int64_t width, int64_t offset, uint8_t* out);
  absl::Status FillMissing(int64_t read, int64_t rows, int64_t row_bytes,
                           uint8_t* out);

  std::string_view contents_;
  JpegOptions options_;
  int channels_ = 0;
  bool has_own_entropy_ = false;
  jpeg_decompress_struct info_;
  jpeg_error_mgr errors_;
  jpeg_source_mgr source_;
  jpeg_progress_mgr progress_;
  JpegClient client_;
  std::vector<uint8_t> line_;
};

struct JpegWriteOptions {
  // "" (by the number of channels), "grayscale" or "rgb".
  std::string format;
  int quality = 95;
  bool progressive = false;
  bool optimize_size = false;
  bool chroma_downsampling = true;
  std::string density_unit = "in";  // or "cm"
  int x_density = 300;
  int y_density = 300;
  std::string xmp_metadata;
};

// `pixels`: height x width x channels, 1 or 3 of them.
absl::StatusOr<std::string> WriteJpeg(const uint8_t* pixels, int64_t height,
                                      int64_t width, int channels,
                                      const JpegWriteOptions& options);

}  // namespace penstock::functions
