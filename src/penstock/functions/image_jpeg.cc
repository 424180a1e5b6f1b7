#include "penstock/functions/image_jpeg.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/image_formats.h"

namespace penstock::functions {
namespace {

// A progressive file may say the same few bits over and over.
constexpr int kMaxScans = 1000;

[[noreturn]] void Exit(j_common_ptr info) {
  longjmp(static_cast<JpegClient*>(info->client_data)->jump, 1);
}
// Warnings are no errors in TensorFlow; they are not printed either.
void Ignore(j_common_ptr info, int level) {
  if (level < 0) ++info->err->num_warnings;
}
void Quiet(j_common_ptr) {}

void BeginSource(j_decompress_ptr) {}
boolean NoMore(j_decompress_ptr) { return FALSE; }
boolean PretendTheEnd(j_decompress_ptr info) {
  static constexpr JOCTET kEnd[] = {0xff, JPEG_EOI};
  info->src->next_input_byte = kEnd;
  info->src->bytes_in_buffer = 2;
  return TRUE;
}
void Skip(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  const size_t most =
      std::min(info->src->bytes_in_buffer, static_cast<size_t>(count));
  info->src->next_input_byte += most;
  info->src->bytes_in_buffer -= most;
}
void Terminate(j_decompress_ptr) {}

// Null: it may be JPEG.
const char* OtherFormat(std::string_view contents) {
  switch (FormatOf(contents)) {
    case ImageFormat::kPng:
      return "PNG";
    case ImageFormat::kGif:
      return "GIF";
    case ImageFormat::kBmp:
      return "BMP";
    case ImageFormat::kWebp:
      return "WebP";
    case ImageFormat::kJpeg:
    case ImageFormat::kUnknown:
      break;
  }
  return nullptr;
}

void CountScans(j_common_ptr info) {
  if (!info->is_decompressor) return;
  auto* reader = reinterpret_cast<j_decompress_ptr>(info);
  if (reader->input_scan_number > kMaxScans) {
    reader->err->msg_code = 0;
    Exit(info);
  }
}

}  // namespace

absl::Status CheckCropWindow(const CropWindow& crop, int64_t height,
                             int64_t width) {
  if (crop.y >= 0 && crop.x >= 0 && crop.height > 0 && crop.width > 0 &&
      crop.height <= height && crop.width <= width &&
      crop.y <= height - crop.height && crop.x <= width - crop.width) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a crop window must have pixels and lie inside the image of ", height,
      " x ", width, "; got y, x, height, width = ", crop.y, ", ", crop.x, ", ",
      crop.height, ", ", crop.width));
}

JpegReader::JpegReader() {
  std::memset(&info_, 0, sizeof(info_));
  info_.err = jpeg_std_error(&errors_);
  errors_.error_exit = Exit;
  errors_.emit_message = Ignore;
  errors_.output_message = Quiet;
  info_.client_data = &client_;
  progress_ = {};
  progress_.progress_monitor = CountScans;
  source_ = {};
  source_.init_source = BeginSource;
  source_.skip_input_data = Skip;
  source_.resync_to_restart = jpeg_resync_to_restart;
  source_.term_source = Terminate;
  Begin();
}

void JpegReader::Begin() {
  if (setjmp(client_.jump)) std::abort();  // no memory for the first few kB
  jpeg_create_decompress(&info_);
  info_.progress = &progress_;
  info_.src = &source_;
}

JpegReader::~JpegReader() { jpeg_destroy_decompress(&info_); }

absl::Status JpegReader::Failure(const char* when) {
  char text[JMSG_LENGTH_MAX] = "too many scans";
  if (errors_.msg_code != 0) {
    errors_.format_message(reinterpret_cast<j_common_ptr>(&info_), text);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected JPEG data; ", when, ": ", text));
}

absl::Status JpegReader::Open(std::string_view contents,
                              const JpegOptions& options) {
  contents_ = contents;
  options_ = options;
  client_.entropy.Reset();
  // Not aborted: then a file without tables would have those of the last one.
  jpeg_destroy_decompress(&info_);
  Begin();
  errors_.num_warnings = 0;
  errors_.msg_code = 0;
  source_.next_input_byte = reinterpret_cast<const JOCTET*>(contents.data());
  source_.bytes_in_buffer = contents.size();
  source_.fill_input_buffer =
      options.try_recover_truncated ? PretendTheEnd : NoMore;
  if (contents.empty()) {
    return absl::InvalidArgumentError("expected JPEG data; got no bytes");
  }
  if (const char* other = OtherFormat(contents)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected JPEG data; got a ", other,
        " file. Decode files of several kinds with decode_image, or leave "
        "those out that end otherwise."));
  }
  if (setjmp(client_.jump)) return Failure("its header is damaged");
  if (jpeg_read_header(&info_, TRUE) != JPEG_HEADER_OK) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected JPEG data; got ", contents.size(),
        " bytes that end within the header. The file may be truncated."));
  }
  channels_ = options.channels;
  if (channels_ == 0) channels_ = std::min(info_.num_components, 3);
  if (channels_ == 1) {
    info_.out_color_space = JCS_GRAYSCALE;
  } else if (channels_ == 3) {
    const bool is_cmyk = info_.jpeg_color_space == JCS_CMYK ||
                         info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "a JPEG image has 1, 3 or 4 channels; got ", info_.num_components));
  }
  info_.do_fancy_upsampling = options.fancy_upscaling ? TRUE : FALSE;
  info_.dct_method = options.is_accurate ? JDCT_ISLOW : JDCT_IFAST;
  return SetRatio(options.ratio);
}

absl::Status JpegReader::SetRatio(int ratio) {
  if (setjmp(client_.jump)) return Failure("its header is damaged");
  options_.ratio = ratio;
  info_.scale_num = 1;
  info_.scale_denom = static_cast<unsigned int>(ratio);
  jpeg_calc_output_dimensions(&info_);
  return CheckSize();
}

absl::Status JpegReader::CheckSize() {
  const int64_t items = height() * width() * info_.num_components;
  // Progressive files are held whole, at 2 bytes an item, whatever the ratio.
  const int64_t held = file_height() * file_width() * info_.num_components / 2;
  if (items > 0 && items < kMaxImageItems && held < kMaxImageItems) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a JPEG image must have pixels, and below 2^29 items; its header says ",
      file_height(), " x ", file_width(), " x ", info_.num_components,
      ". Filter such files out, or decode with a larger ratio."));
}

int64_t JpegReader::ReadRows(int64_t rows, int64_t width, int64_t offset,
                             uint8_t* out) {
  const int64_t row_bytes = width * channels_;
  const bool is_cmyk = info_.out_color_space == JCS_CMYK;
  if (!is_cmyk && width == this->width()) {
    constexpr int kAtOnce = 8;
    JSAMPROW lines[kAtOnce];
    int64_t row = 0;
    while (row < rows) {
      const int count =
          static_cast<int>(std::min<int64_t>(kAtOnce, rows - row));
      for (int i = 0; i < count; ++i) lines[i] = out + (row + i) * row_bytes;
      const JDIMENSION read = jpeg_read_scanlines(&info_, lines, count);
      if (read == 0) break;
      row += read;
    }
    return row;
  }
  JSAMPROW line = line_.data();
  for (int64_t row = 0; row < rows; ++row, out += row_bytes) {
    if (jpeg_read_scanlines(&info_, &line, 1) == 0) return row;
    if (!is_cmyk) {
      std::memcpy(out, line + offset * channels_, row_bytes);
      continue;
    }
    const uint8_t* from = line + offset * 4;
    for (int64_t i = 0; i < width; ++i, from += 4) {
      const int k = from[3];
      for (int c = 0; c < 3; ++c) {
        out[3 * i + c] = static_cast<uint8_t>(
            info_.saw_Adobe_marker ? k * from[c] / 255
                                   : (255 - k) * (255 - from[c]) / 255);
      }
    }
  }
  return rows;
}

absl::Status JpegReader::FillMissing(int64_t read, int64_t rows,
                                     int64_t row_bytes, uint8_t* out) {
  if (read == rows) return absl::OkStatus();
  const float fraction = static_cast<float>(read) / static_cast<float>(rows);
  if (fraction < std::min(1.0F, options_.acceptable_fraction)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ", rows, " rows of JPEG data; it ends after ", read,
        ". The file is truncated: filter it out, or keep its rows with "
        "decode_jpeg(acceptable_fraction=...)."));
  }
  std::memset(out + read * row_bytes, 0, (rows - read) * row_bytes);
  return absl::OkStatus();
}

bool JpegReader::Start() {
  if (jpeg_start_decompress(&info_) != TRUE) return false;
  has_own_entropy_ =
      !options_.is_plain && client_.entropy.Install(&info_, Exit);
  return true;
}

template <typename ReadOnce>
absl::Status JpegReader::ReadTwice(ReadOnce&& read_once) {
  absl::Status status = read_once();
  if (!client_.entropy.has_given_up()) return status;
  JpegOptions options = options_;
  options.is_plain = true;
  PENSTOCK_RETURN_IF_ERROR(Open(contents_, options));
  return read_once();
}

absl::Status JpegReader::Read(uint8_t* out) {
  return ReadTwice([&] { return ReadWhole(out); });
}

absl::Status JpegReader::ReadStrictly(JpegRows& rows) {
  PENSTOCK_RETURN_IF_ERROR(ReadTwice([&] { return ReadInto(rows); }));
  if (errors_.num_warnings == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("the JPEG data is damaged");
}

absl::Status JpegReader::ReadCrop(const CropWindow& crop, bool is_exact,
                                  uint8_t* out) {
  PENSTOCK_RETURN_IF_ERROR(CheckCropWindow(crop, height(), width()));
  return ReadTwice([&] { return ReadWindow(crop, is_exact, out); });
}

absl::Status JpegReader::ReadWhole(uint8_t* out) {
  if (info_.out_color_space == JCS_CMYK) line_.resize(width() * 4);
  if (setjmp(client_.jump)) return Failure("it is damaged");
  const int64_t read = Start() ? ReadRows(height(), width(), 0, out) : 0;
  return FillMissing(read, height(), width() * channels_, out);
}

bool JpegReader::HasAllScans() const {
  if (info_.progressive_mode == FALSE) return true;
  constexpr int kSmoothed = 10;  // coefficients that libjpeg may guess
  for (int i = 0; i < info_.num_components; ++i) {
    for (int k = 0; k < kSmoothed; ++k) {
      if (info_.coef_bits[i][k] != 0) return false;
    }
  }
  return true;
}

absl::Status JpegReader::ReadInto(JpegRows& rows) {
  rows.Begin();
  if (setjmp(client_.jump)) return Failure("it is damaged");
  if (!Start() || !HasAllScans()) {
    return absl::InvalidArgumentError("the JPEG data is incomplete");
  }
  while (info_.output_scanline < info_.output_height) {
    const absl::Span<uint8_t* const> places = rows.places();
    const JDIMENSION end =
        std::min(info_.output_scanline + static_cast<JDIMENSION>(places.size()),
                 info_.output_height);
    for (size_t i = 0; info_.output_scanline < end;) {
      // libjpeg writes to rows, not to where they are.
      auto* lines = const_cast<uint8_t**>(places.data() + i);
      const JDIMENSION read =
          jpeg_read_scanlines(&info_, lines, end - info_.output_scanline);
      if (read == 0) {
        return absl::InvalidArgumentError("the JPEG data is truncated");
      }
      i += read;
    }
    rows.Commit();
  }
  const bool has_ended = has_own_entropy_
                             ? client_.entropy.marker_after() == JPEG_EOI
                             : jpeg_finish_decompress(&info_) == TRUE;
  if (has_ended) return absl::OkStatus();
  return absl::InvalidArgumentError("the JPEG data has no end");
}

absl::Status JpegReader::ReadWindow(const CropWindow& crop, bool is_exact,
                                    uint8_t* out) {
  // Chroma is smoothed over its neighbours: two more pixels of it on each side.
  const int64_t more = is_exact ? int64_t{2} * info_.max_h_samp_factor : 0;
  const int64_t left = std::max<int64_t>(0, crop.x - more);
  const int64_t right = std::min(width(), crop.x + crop.width + more);
  auto x = static_cast<JDIMENSION>(left);
  auto columns = static_cast<JDIMENSION>(right - left);
  line_.resize(width() * (info_.out_color_space == JCS_CMYK ? 4 : channels_));
  if (setjmp(client_.jump)) return Failure("it is damaged");
  int64_t read = 0;
  if (Start()) {
    if (columns < info_.output_width) {
      jpeg_crop_scanline(&info_, &x, &columns);
    } else {
      x = 0;
    }
    const auto skipped = static_cast<JDIMENSION>(crop.y);
    if (jpeg_skip_scanlines(&info_, skipped) == skipped) {
      read = ReadRows(crop.height, crop.width, crop.x - x, out);
    }
  }
  return FillMissing(read, crop.height, crop.width * channels_, out);
}

namespace {

[[noreturn]] void ExitWriter(j_common_ptr info) {
  longjmp(*static_cast<jmp_buf*>(info->client_data), 1);
}

// What must outlive a jump out of the library.
struct Writer {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  jmp_buf jump;
  unsigned char* made = nullptr;
  unsigned long made_size = 0;  // NOLINT(google-runtime-int): libjpeg's type

  Writer() {
    std::memset(&info, 0, sizeof(info));
    info.err = jpeg_std_error(&errors);
    errors.error_exit = ExitWriter;
    errors.emit_message = Ignore;
    errors.output_message = Quiet;
    info.client_data = &jump;
  }
  ~Writer() {
    jpeg_destroy_compress(&info);
    std::free(made);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
};

bool Write(Writer& writer, const uint8_t* pixels, int64_t height, int64_t width,
           int channels, const JpegWriteOptions& options,
           const std::string& packet) {
  jpeg_compress_struct& info = writer.info;
  if (setjmp(writer.jump)) return false;
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &writer.made, &writer.made_size);
  info.image_height = static_cast<JDIMENSION>(height);
  info.image_width = static_cast<JDIMENSION>(width);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  if (options.optimize_size) info.optimize_coding = TRUE;
  info.density_unit = options.density_unit == "cm" ? 2 : 1;
  info.X_density = static_cast<UINT16>(options.x_density);
  info.Y_density = static_cast<UINT16>(options.y_density);
  jpeg_set_quality(&info, options.quality, TRUE);
  if (options.progressive) jpeg_simple_progression(&info);
  if (!options.chroma_downsampling) {
    for (int i = 0; i < info.num_components; ++i) {
      info.comp_info[i].h_samp_factor = 1;
      info.comp_info[i].v_samp_factor = 1;
    }
  }
  jpeg_start_compress(&info, TRUE);
  if (!packet.empty()) {
    jpeg_write_marker(&info, JPEG_APP0 + 1,
                      reinterpret_cast<const JOCTET*>(packet.data()),
                      static_cast<unsigned int>(packet.size()));
  }
  while (info.next_scanline < info.image_height) {
    auto* line =
        const_cast<JSAMPROW>(pixels + info.next_scanline * width * channels);
    jpeg_write_scanlines(&info, &line, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

}  // namespace

absl::StatusOr<std::string> WriteJpeg(const uint8_t* pixels, int64_t height,
                                      int64_t width, int channels,
                                      const JpegWriteOptions& options) {
  constexpr size_t kMaxMarker = 65533;
  std::string packet;
  if (!options.xmp_metadata.empty()) {
    packet.assign("http://ns.adobe.com/xap/1.0/\0", 29);
    packet += options.xmp_metadata;
  }
  if (packet.size() > kMaxMarker || height < 1 || width < 1 ||
      height > JPEG_MAX_DIMENSION || width > JPEG_MAX_DIMENSION) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a JPEG image has 1 to 65500 rows and columns, and below 64 kB of "
        "metadata; got ",
        height, " x ", width, " and ", packet.size(), " bytes"));
  }
  Writer writer;
  if (Write(writer, pixels, height, width, channels, options, packet)) {
    return std::string(reinterpret_cast<const char*>(writer.made),
                       writer.made_size);
  }
  char text[JMSG_LENGTH_MAX];
  writer.errors.format_message(reinterpret_cast<j_common_ptr>(&writer.info),
                               text);
  return absl::InternalError(absl::StrCat("cannot write JPEG: ", text));
}

}  // namespace penstock::functions
