#include "penstock/functions/image_formats.h"

#include <gif_lib.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/image_jpeg.h"

namespace penstock::functions {
namespace {

const uint8_t* Bytes(std::string_view contents) {
  return reinterpret_cast<const uint8_t*>(contents.data());
}

// Little-endian, unaligned.
template <typename T>
T At(std::string_view contents, size_t at) {
  T value;
  std::memcpy(&value, contents.data() + at, sizeof(T));
  return value;
}

}  // namespace

ImageFormat FormatOf(std::string_view contents) {
  using std::literals::operator""sv;
  if (contents.starts_with("\xff\xd8\xff"sv)) return ImageFormat::kJpeg;
  if (contents.starts_with("\x89PNG\r\n\x1a\n"sv)) return ImageFormat::kPng;
  if (contents.starts_with("GIF8"sv)) return ImageFormat::kGif;
  if (contents.starts_with("BM"sv)) return ImageFormat::kBmp;
  if (contents.starts_with("RIFF"sv) && contents.size() >= 12 &&
      contents.substr(8, 4) == "WEBP"sv) {
    return ImageFormat::kWebp;
  }
  return ImageFormat::kUnknown;
}

absl::Status CheckHead(const char* format, const ImageHead& head) {
  int64_t items = 1;
  bool is_too_large = false;
  bool is_empty = false;
  for (int64_t dim :
       {head.frames, head.height, head.width, int64_t{head.channels}}) {
    is_empty = is_empty || dim <= 0;
    is_too_large = is_too_large || __builtin_mul_overflow(items, dim, &items) ||
                   items >= kMaxImageItems;
  }
  if (!is_too_large && !is_empty) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a ", format,
      " image must have pixels, and below 2^29 items; its header says ",
      head.frames, " frames of ", head.height, " x ", head.width, " x ",
      head.channels, ". Filter such files out."));
}

absl::StatusOr<ImageHead> BmpHead(std::string_view contents, int channels) {
  constexpr size_t kLeast = 54;
  if (!contents.starts_with("BM") || contents.size() < kLeast) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected BMP data, which begins with BM and ", kLeast,
        " bytes of header; got ", contents.size(), " bytes that do not"));
  }
  const auto height = At<int32_t>(contents, 22);
  const auto bits = At<uint16_t>(contents, 28);
  const auto compression = At<uint32_t>(contents, 30);
  ImageHead head;
  head.width = At<int32_t>(contents, 18);
  head.height = std::abs(int64_t{height});
  head.channels = bits / 8;
  constexpr uint32_t kBitFields = 3;  // how writers mark 32 bits with alpha
  if ((bits != 8 && bits != 24 && bits != 32) ||
      (compression != 0 && !(compression == kBitFields && bits == 32))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a BMP of 8, 24 or 32 bits a pixel without compression; got ",
        bits, " bits and compression ", compression));
  }
  if (channels != 0 && channels != head.channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("channels must be 0 or those of the BMP file, ",
                     head.channels, "; got ", channels));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckHead("BMP", head));
  return head;
}

absl::Status ReadBmp(std::string_view contents, const ImageHead& head,
                     uint8_t* out) {
  const int64_t begin = At<uint32_t>(contents, 10);
  const bool is_top_down = At<int32_t>(contents, 22) < 0;
  const int64_t row_bytes = head.width * head.channels;
  const int64_t padded = (row_bytes + 3) / 4 * 4;
  const int64_t needed = begin + padded * head.height;
  if (needed > static_cast<int64_t>(contents.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected ", needed, " bytes of BMP data; got ",
                     contents.size(), ". The file may be truncated."));
  }
  for (int64_t y = 0; y < head.height; ++y, out += row_bytes) {
    const int64_t from_row = is_top_down ? y : head.height - 1 - y;
    const uint8_t* from = Bytes(contents) + begin + from_row * padded;
    if (head.channels == 1) {
      std::memcpy(out, from, row_bytes);
      continue;
    }
    for (int64_t i = 0; i < row_bytes; i += head.channels) {
      out[i] = from[i + 2];
      out[i + 1] = from[i + 1];
      out[i + 2] = from[i];
      if (head.channels == 4) out[i + 3] = from[i + 3];
    }
  }
  return absl::OkStatus();
}

// Walks the blocks without unpacking them: the library would take memory for
// every frame that a few bytes announce.
absl::StatusOr<ImageHead> GifHead(std::string_view contents) {
  const uint8_t* bytes = Bytes(contents);
  const size_t size = contents.size();
  const absl::Status truncated = absl::InvalidArgumentError(
      absl::StrCat("expected GIF data; got ", size,
                   " bytes that end too early. The file may be truncated."));
  if (!contents.starts_with("GIF8")) {
    return absl::InvalidArgumentError(
        "expected GIF data; its first bytes are not GIF8");
  }
  if (size < 13) return truncated;
  auto map_bytes = [](uint8_t flags) -> size_t {
    return (flags & 0x80) != 0 ? size_t{3} << ((flags & 7) + 1) : 0;
  };
  ImageHead head;
  head.frames = 0;
  head.channels = 3;
  int64_t pixels = 0;
  size_t at = 13 + map_bytes(bytes[10]);
  auto skip_blocks = [&] {
    while (at < size && bytes[at] != 0) at += size_t{bytes[at]} + 1;
    ++at;
  };
  while (at < size && bytes[at] != 0x3b) {
    if (bytes[at] == 0x21) {  // an extension
      at += 2;
      skip_blocks();
      continue;
    }
    if (bytes[at] != 0x2c) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected GIF data; byte ", at, " begins no block"));
    }
    if (at + 10 > size) return truncated;
    const int64_t width = At<uint16_t>(contents, at + 5);
    const int64_t height = At<uint16_t>(contents, at + 7);
    head.width = std::max(head.width, width);
    head.height = std::max(head.height, height);
    ++head.frames;
    pixels += width * height;
    if (pixels >= kMaxImageItems) break;
    at += 10 + map_bytes(bytes[at + 9]) + 1;
    skip_blocks();
  }
  PENSTOCK_RETURN_IF_ERROR(CheckHead("GIF", head));
  // No byte for the end of the file is what the library minds least of all.
  if (at > size) return truncated;
  return head;
}

namespace {

struct GifReader {
  std::string_view contents;
  size_t at = 0;
  GifFileType* file = nullptr;

  explicit GifReader(std::string_view bytes) : contents(bytes) {}
  ~GifReader() {
    int error = 0;
    if (file != nullptr) DGifCloseFile(file, &error);
  }
  GifReader(const GifReader&) = delete;
  GifReader& operator=(const GifReader&) = delete;
};

int ReadGifBytes(GifFileType* file, GifByteType* to, int count) {
  auto* reader = static_cast<GifReader*>(file->UserData);
  const size_t most = std::min(static_cast<size_t>(count),
                               reader->contents.size() - reader->at);
  std::memcpy(to, reader->contents.data() + reader->at, most);
  reader->at += most;
  return static_cast<int>(most);
}

absl::Status GifFailure(int error) {
  const char* text = GifErrorString(error);
  return absl::InvalidArgumentError(
      absl::StrCat("expected GIF data; it is damaged: ",
                   text == nullptr ? "unknown error" : text));
}

// Paints frame k over what `out` holds.
absl::Status PaintFrame(GifFileType* file, int k, const ImageHead& head,
                        uint8_t* out) {
  const SavedImage& image = file->SavedImages[k];
  const GifImageDesc& place = image.ImageDesc;
  const ColorMapObject* colors =
      place.ColorMap != nullptr ? place.ColorMap : file->SColorMap;
  if (colors == nullptr || image.RasterBits == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame ", k, " of a GIF has no colours"));
  }
  GraphicsControlBlock control;
  control.TransparentColor = NO_TRANSPARENT_COLOR;
  DGifSavedExtensionToGCB(file, k, &control);
  const int64_t bottom =
      std::min<int64_t>(int64_t{place.Top} + place.Height, head.height);
  const int64_t right =
      std::min<int64_t>(int64_t{place.Left} + place.Width, head.width);
  for (int64_t y = place.Top; y < bottom; ++y) {
    const GifByteType* from =
        image.RasterBits + (y - place.Top) * place.Width - place.Left;
    uint8_t* to = out + y * head.width * 3;
    for (int64_t x = place.Left; x < right; ++x) {
      const int index = from[x];
      if (index == control.TransparentColor) continue;
      if (index >= colors->ColorCount) {
        return absl::InvalidArgumentError(
            absl::StrCat("colour ", index, " of frame ", k,
                         " of a GIF is not one of its ", colors->ColorCount));
      }
      to[3 * x] = colors->Colors[index].Red;
      to[3 * x + 1] = colors->Colors[index].Green;
      to[3 * x + 2] = colors->Colors[index].Blue;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGif(std::string_view contents, const ImageHead& head,
                     uint8_t* out) {
  GifReader reader(contents);
  int error = 0;
  reader.file = DGifOpen(&reader, ReadGifBytes, &error);
  if (reader.file == nullptr) return GifFailure(error);
  if (DGifSlurp(reader.file) != GIF_OK ||
      reader.file->ImageCount < head.frames) {
    return GifFailure(reader.file->Error);
  }
  const int64_t frame_bytes = head.height * head.width * 3;
  for (int64_t k = 0; k < head.frames; ++k, out += frame_bytes) {
    if (k == 0) {
      std::memset(out, 0, frame_bytes);
    } else {
      std::memcpy(out, out - frame_bytes, frame_bytes);
    }
    PENSTOCK_RETURN_IF_ERROR(
        PaintFrame(reader.file, static_cast<int>(k), head, out));
  }
  return absl::OkStatus();
}

absl::StatusOr<ImageHead> WebpHead(std::string_view contents, int channels) {
  WebPBitstreamFeatures features;
  const VP8StatusCode code =
      WebPGetFeatures(Bytes(contents), contents.size(), &features);
  if (code != VP8_STATUS_OK) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected WebP data; got ", contents.size(), " bytes that are ",
        code == VP8_STATUS_NOT_ENOUGH_DATA ? "truncated" : "no WebP image"));
  }
  ImageHead head;
  head.height = features.height;
  head.width = features.width;
  head.channels = channels != 0 ? channels : features.has_alpha != 0 ? 4 : 3;
  if (features.has_animation != 0) {
    const WebPData data = {Bytes(contents), contents.size()};
    const std::unique_ptr<WebPDemuxer, void (*)(WebPDemuxer*)> demuxer(
        WebPDemux(&data), WebPDemuxDelete);
    if (demuxer == nullptr) {
      return absl::InvalidArgumentError(
          "expected WebP data; its frames are damaged or truncated");
    }
    head.frames = WebPDemuxGetI(demuxer.get(), WEBP_FF_FRAME_COUNT);
  }
  PENSTOCK_RETURN_IF_ERROR(CheckHead("WebP", head));
  return head;
}

namespace {

absl::Status ReadWebpFrames(std::string_view contents, const ImageHead& head,
                            uint8_t* out) {
  WebPAnimDecoderOptions options;
  WebPAnimDecoderOptionsInit(&options);
  options.color_mode = MODE_RGBA;
  const WebPData data = {Bytes(contents), contents.size()};
  const std::unique_ptr<WebPAnimDecoder, void (*)(WebPAnimDecoder*)> decoder(
      WebPAnimDecoderNew(&data, &options), WebPAnimDecoderDelete);
  const int64_t pixels = head.height * head.width;
  for (int64_t k = 0; k < head.frames; ++k) {
    uint8_t* frame = nullptr;
    int milliseconds = 0;
    if (decoder == nullptr ||
        WebPAnimDecoderGetNext(decoder.get(), &frame, &milliseconds) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected WebP data; frame ", k, " is damaged or truncated"));
    }
    for (int64_t i = 0; i < pixels; ++i, out += head.channels, frame += 4) {
      std::memcpy(out, frame, head.channels);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadWebp(std::string_view contents, const ImageHead& head,
                      uint8_t* out) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(Bytes(contents), contents.size(), &features) ==
          VP8_STATUS_OK &&
      features.has_animation != 0) {
    return ReadWebpFrames(contents, head, out);
  }
  const int64_t row_bytes = head.width * head.channels;
  const size_t bytes = head.height * row_bytes;
  const auto decode =
      head.channels == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  if (decode(Bytes(contents), contents.size(), out, bytes,
             static_cast<int>(row_bytes)) != nullptr) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "expected WebP data; it is damaged or truncated");
}

}  // namespace penstock::functions
