#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/base/status.h"
#include "penstock/functions/appender.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/image_formats.h"
#include "penstock/functions/image_jpeg.h"
#include "penstock/functions/image_options.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

std::optional<int64_t> Known(int64_t channels) {
  return channels == 0 ? std::optional<int64_t>() : channels;
}

absl::StatusOr<int64_t> ChannelsAttr(std::string_view name, const Attrs& attrs,
                                     std::initializer_list<int64_t> allowed) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t channels,
                            IntAttr(attrs, "channels", 0));
  if (std::find(allowed.begin(), allowed.end(), channels) != allowed.end()) {
    return channels;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Text(name), "'s channels must be one of ",
                   absl::StrJoin(allowed, ", "), "; got ", channels));
}

absl::StatusOr<DType> OneOf(std::string_view name, const Attrs& attrs,
                            std::initializer_list<DType> allowed) {
  PENSTOCK_ASSIGN_OR_RETURN(const DType dtype,
                            DTypeAttr(attrs, "dtype", DType::kUint8));
  if (std::find(allowed.begin(), allowed.end(), dtype) != allowed.end()) {
    return dtype;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      Text(name), " cannot give dtype ", Text(Name(dtype)),
      "; uint8 is what it gives unless told, others are in its documentation"));
}

// Decodes every row. decode(row, contents, appender) -> absl::Status begins and
// fills the row.
template <typename Decode>
absl::StatusOr<Column> DecodeRows(absl::Span<const Arg> args, DType dtype,
                                  int rank, EvalContext& context,
                                  Decode&& decode) {
  const int64_t rows = ResultRows(args, context);
  RowAppender appender(dtype, rank, rows, context);
  for (int64_t row = 0; row < rows; ++row) {
    const std::string_view contents =
        args[0].column->Row<StringRef>(RowIndex(args[0], row))->view();
    absl::Status status = decode(row, contents, appender);
    if (status.ok()) {
      appender.Commit();
    } else {
      appender.Fail(context, std::move(status));
    }
  }
  return std::move(appender).Finish();
}

// ---- JPEG

absl::StatusOr<TensorSpec> InferJpeg(absl::Span<const ArgSpec> args,
                                     const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckContents("decode_jpeg", args[0]));
  PENSTOCK_ASSIGN_OR_RETURN(const JpegOptions options, JpegAttrs(attrs));
  return ImageSpec(DType::kUint8, {}, {}, Known(options.channels));
}

absl::StatusOr<Column> EvalJpeg(absl::Span<const Arg> args, const Attrs& attrs,
                                const TensorSpec&, EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const JpegOptions options, JpegAttrs(attrs));
  JpegReader reader;
  return DecodeRows(
      args, DType::kUint8, 3, context,
      [&](int64_t, std::string_view contents, RowAppender& to) -> absl::Status {
        PENSTOCK_RETURN_IF_ERROR(reader.Open(contents, options));
        std::byte* out =
            to.Begin({reader.height(), reader.width(), reader.channels()});
        return reader.Read(reinterpret_cast<uint8_t*>(out));
      });
}

absl::StatusOr<TensorSpec> InferCropJpeg(absl::Span<const ArgSpec> args,
                                         const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckContents("decode_and_crop_jpeg", args[0]));
  PENSTOCK_RETURN_IF_ERROR(CheckInts("crop_window", args[1], 1));
  PENSTOCK_ASSIGN_OR_RETURN(const JpegOptions options, JpegAttrs(attrs));
  const std::optional<Ints> window = ConstantInts(args[1]);
  if (KnownCount(args[1]).value_or(4) != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("crop_window must be y, x, height and width; got ",
                     args[1].spec.ToString()));
  }
  if (!window) return ImageSpec(DType::kUint8, {}, {}, Known(options.channels));
  return ImageSpec(DType::kUint8, (*window)[2], (*window)[3],
                   Known(options.channels));
}

absl::StatusOr<Column> EvalCropJpeg(absl::Span<const Arg> args,
                                    const Attrs& attrs, const TensorSpec&,
                                    EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const JpegOptions options, JpegAttrs(attrs));
  JpegReader reader;
  return DecodeRows(
      args, DType::kUint8, 3, context,
      [&](int64_t row, std::string_view contents,
          RowAppender& to) -> absl::Status {
        PENSTOCK_RETURN_IF_ERROR(reader.Open(contents, options));
        const Ints window = ReadInts(*args[1].column, RowIndex(args[1], row));
        if (window.size() != 4) {
          return absl::InvalidArgumentError(
              absl::StrCat("crop_window must be y, x, height and width; got ",
                           window.size(), " numbers"));
        }
        const CropWindow crop = {window[0], window[1], window[2], window[3]};
        PENSTOCK_RETURN_IF_ERROR(
            CheckCropWindow(crop, reader.height(), reader.width()));
        std::byte* out = to.Begin({crop.height, crop.width, reader.channels()});
        return reader.ReadCrop(crop, /*is_exact=*/false,
                               reinterpret_cast<uint8_t*>(out));
      });
}

absl::StatusOr<TensorSpec> InferIsJpeg(absl::Span<const ArgSpec> args,
                                       const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(CheckContents("is_jpeg", args[0]));
  return TensorSpec{DType::kBool, {}};
}

absl::StatusOr<Column> EvalIsJpeg(absl::Span<const Arg> args, const Attrs&,
                                  const TensorSpec&, EvalContext& context) {
  const int64_t rows = ResultRows(args, context);
  Buffer values = Buffer::Allocate(rows);
  for (int64_t row = 0; row < rows; ++row) {
    values.MutableAs<bool>()[row] =
        FormatOf(args[0].column->Row<StringRef>(row)->view()) ==
        ImageFormat::kJpeg;
  }
  return Column::Dense(DType::kBool, {}, rows, std::move(values));
}

absl::StatusOr<TensorSpec> InferJpegShape(absl::Span<const ArgSpec> args,
                                          const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckContents("extract_jpeg_shape", args[0]));
  PENSTOCK_ASSIGN_OR_RETURN(const DType dtype,
                            DTypeAttr(attrs, "output_type", DType::kInt32));
  if (dtype != DType::kInt32 && dtype != DType::kInt64) {
    return absl::InvalidArgumentError(absl::StrCat(
        "output_type must be int32 or int64; got ", Text(Name(dtype))));
  }
  return TensorSpec{dtype, PartialShape(PartialShape::Dims{3})};
}

absl::StatusOr<Column> EvalJpegShape(absl::Span<const Arg> args, const Attrs&,
                                     const TensorSpec& result,
                                     EvalContext& context) {
  JpegReader reader;
  // One of 8: sizes that could not be decoded whole still have a shape.
  const JpegOptions options = {.ratio = 8};
  return DecodeRows(
      args, result.dtype, 1, context,
      [&](int64_t, std::string_view contents, RowAppender& to) -> absl::Status {
        PENSTOCK_RETURN_IF_ERROR(reader.Open(contents, options));
        std::byte* out = to.Begin({3});
        const int64_t dims[] = {reader.file_height(), reader.file_width(),
                                reader.file_channels()};
        for (int i = 0; i < 3; ++i) {
          if (result.dtype == DType::kInt64) {
            reinterpret_cast<int64_t*>(out)[i] = dims[i];
          } else {
            reinterpret_cast<int32_t*>(out)[i] = static_cast<int32_t>(dims[i]);
          }
        }
        return absl::OkStatus();
      });
}

// ---- The other formats

absl::StatusOr<TensorSpec> InferPng(absl::Span<const ArgSpec> args,
                                    const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckContents("decode_png", args[0]));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t channels,
                            ChannelsAttr("decode_png", attrs, {0, 1, 3, 4}));
  PENSTOCK_ASSIGN_OR_RETURN(
      const DType dtype,
      OneOf("decode_png", attrs, {DType::kUint8, DType::kUint16}));
  return ImageSpec(dtype, {}, {}, Known(channels));
}

absl::StatusOr<Column> EvalPng(absl::Span<const Arg> args, const Attrs& attrs,
                               const TensorSpec& result, EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t channels,
                            IntAttr(attrs, "channels", 0));
  return DecodeRows(
      args, result.dtype, 3, context,
      [&](int64_t, std::string_view contents, RowAppender& to) -> absl::Status {
        PENSTOCK_ASSIGN_OR_RETURN(
            const ImageHead head,
            PngHead(contents, static_cast<int>(channels)));
        std::byte* out = to.Begin({head.height, head.width, head.channels});
        return ReadPng(contents, head, result.dtype == DType::kUint8 ? 8 : 16,
                       out);
      });
}

absl::StatusOr<TensorSpec> InferBmp(absl::Span<const ArgSpec> args,
                                    const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckContents("decode_bmp", args[0]));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t channels,
                            ChannelsAttr("decode_bmp", attrs, {0, 1, 3, 4}));
  return ImageSpec(DType::kUint8, {}, {}, Known(channels));
}

absl::StatusOr<Column> EvalBmp(absl::Span<const Arg> args, const Attrs& attrs,
                               const TensorSpec&, EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t channels,
                            IntAttr(attrs, "channels", 0));
  return DecodeRows(
      args, DType::kUint8, 3, context,
      [&](int64_t, std::string_view contents, RowAppender& to) -> absl::Status {
        PENSTOCK_ASSIGN_OR_RETURN(
            const ImageHead head,
            BmpHead(contents, static_cast<int>(channels)));
        std::byte* out = to.Begin({head.height, head.width, head.channels});
        return ReadBmp(contents, head, reinterpret_cast<uint8_t*>(out));
      });
}

absl::StatusOr<TensorSpec> InferGif(absl::Span<const ArgSpec> args,
                                    const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(CheckContents("decode_gif", args[0]));
  return TensorSpec{DType::kUint8,
                    PartialShape(PartialShape::Dims{{}, {}, {}, 3})};
}

absl::StatusOr<Column> EvalGif(absl::Span<const Arg> args, const Attrs&,
                               const TensorSpec&, EvalContext& context) {
  return DecodeRows(
      args, DType::kUint8, 4, context,
      [&](int64_t, std::string_view contents, RowAppender& to) -> absl::Status {
        PENSTOCK_ASSIGN_OR_RETURN(const ImageHead head, GifHead(contents));
        std::byte* out =
            to.Begin({head.frames, head.height, head.width, head.channels});
        return ReadGif(contents, head, reinterpret_cast<uint8_t*>(out));
      });
}

absl::StatusOr<TensorSpec> InferWebp(absl::Span<const ArgSpec> args,
                                     const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckContents("decode_webp", args[0]));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t channels,
                            ChannelsAttr("decode_webp", attrs, {0, 3, 4}));
  return TensorSpec{DType::kUint8, PartialShape(PartialShape::Dims{
                                       {}, {}, {}, Known(channels)})};
}

absl::StatusOr<Column> EvalWebp(absl::Span<const Arg> args, const Attrs& attrs,
                                const TensorSpec&, EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t channels,
                            IntAttr(attrs, "channels", 0));
  return DecodeRows(
      args, DType::kUint8, 4, context,
      [&](int64_t, std::string_view contents, RowAppender& to) -> absl::Status {
        PENSTOCK_ASSIGN_OR_RETURN(
            const ImageHead head,
            WebpHead(contents, static_cast<int>(channels)));
        std::byte* out =
            to.Begin({head.frames, head.height, head.width, head.channels});
        return ReadWebp(contents, head, reinterpret_cast<uint8_t*>(out));
      });
}

// ---- Any of them

absl::StatusOr<TensorSpec> InferImage(absl::Span<const ArgSpec> args,
                                      const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckContents("decode_image", args[0]));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t channels,
                            ChannelsAttr("decode_image", attrs, {0, 1, 3, 4}));
  PENSTOCK_ASSIGN_OR_RETURN(
      const DType dtype,
      OneOf("decode_image", attrs,
            {DType::kUint8, DType::kUint16, DType::kFloat32}));
  PENSTOCK_ASSIGN_OR_RETURN(const bool expand_animations,
                            BoolAttr(attrs, "expand_animations", false));
  // Of a GIF or WebP file there are frames.
  if (expand_animations) return TensorSpec{dtype, PartialShape::UnknownRank()};
  return ImageSpec(dtype, {}, {}, Known(channels));
}

// The bytes of an image as items of `dtype`, as TensorFlow scales them.
void Widen(const uint8_t* from, int64_t count, DType dtype, std::byte* to) {
  if (dtype == DType::kUint16) {
    auto* out = reinterpret_cast<uint16_t*>(to);
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<uint16_t>(from[i] * 256);
    }
  } else {
    auto* out = reinterpret_cast<float*>(to);
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<float>(from[i]) * (1.0F / 255);
    }
  }
}

// What decode_image needs from row to row.
struct AnyReader {
  JpegReader jpeg;
  std::vector<uint8_t> bytes;
  std::vector<uint16_t> words;

  // Of an animation, with all its frames or (if not) the first.
  absl::StatusOr<ImageHead> Head(std::string_view contents, int channels,
                                 bool has_frames) {
    switch (FormatOf(contents)) {
      case ImageFormat::kJpeg: {
        if (channels == 4) {
          return absl::InvalidArgumentError(
              "channels must be 0, 1 or 3 for JPEG; got 4");
        }
        PENSTOCK_RETURN_IF_ERROR(jpeg.Open(contents, {.channels = channels}));
        return ImageHead{1, jpeg.height(), jpeg.width(), jpeg.channels()};
      }
      case ImageFormat::kPng:
        return PngHead(contents, channels);
      case ImageFormat::kBmp:
        return BmpHead(contents, channels);
      case ImageFormat::kGif:
      case ImageFormat::kWebp: {
        const bool is_gif = FormatOf(contents) == ImageFormat::kGif;
        if (channels == 1 || (is_gif && channels == 4)) {
          return absl::InvalidArgumentError(
              absl::StrCat("channels must be 0 or 3 for GIF, 0, 3 or 4 for "
                           "WebP; got ",
                           channels));
        }
        PENSTOCK_ASSIGN_OR_RETURN(
            ImageHead head,
            is_gif ? GifHead(contents) : WebpHead(contents, channels));
        if (!has_frames) head.frames = 1;
        return head;
      }
      case ImageFormat::kUnknown:
        break;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "expected the bytes of a JPEG, PNG, GIF, BMP or WebP file; got ",
        contents.size(),
        " bytes that begin like none of them. Was the file read, or only its "
        "name?"));
  }

  absl::Status Read(std::string_view contents, const ImageHead& head,
                    uint8_t* out) {
    switch (FormatOf(contents)) {
      case ImageFormat::kJpeg:
        return jpeg.Read(out);
      case ImageFormat::kPng:
        return ReadPng(contents, head, 8, out);
      case ImageFormat::kBmp:
        return ReadBmp(contents, head, out);
      case ImageFormat::kGif:
        return ReadGif(contents, head, out);
      case ImageFormat::kWebp:
        return ReadWebp(contents, head, out);
      case ImageFormat::kUnknown:
        break;
    }
    return absl::InternalError("no format");
  }

  absl::Status ReadAs(std::string_view contents, const ImageHead& head,
                      DType dtype, std::byte* out) {
    if (dtype == DType::kUint8) {
      return Read(contents, head, reinterpret_cast<uint8_t*>(out));
    }
    const int64_t count =
        head.frames * head.height * head.width * head.channels;
    const bool is_png = FormatOf(contents) == ImageFormat::kPng;
    if (is_png && dtype == DType::kUint16) {
      return ReadPng(contents, head, 16, out);
    }
    if (is_png) {
      words.resize(count);
      PENSTOCK_RETURN_IF_ERROR(ReadPng(contents, head, 16, words.data()));
      for (int64_t i = 0; i < count; ++i) {
        reinterpret_cast<float*>(out)[i] =
            static_cast<float>(words[i]) * (1.0F / 65535);
      }
      return absl::OkStatus();
    }
    bytes.resize(count);
    PENSTOCK_RETURN_IF_ERROR(Read(contents, head, bytes.data()));
    Widen(bytes.data(), count, dtype, out);
    return absl::OkStatus();
  }
};

bool IsAnimation(std::string_view contents) {
  const ImageFormat format = FormatOf(contents);
  return format == ImageFormat::kGif || format == ImageFormat::kWebp;
}

absl::StatusOr<Column> EvalImage(absl::Span<const Arg> args, const Attrs& attrs,
                                 const TensorSpec& result,
                                 EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t channels,
                            IntAttr(attrs, "channels", 0));
  PENSTOCK_ASSIGN_OR_RETURN(const bool is_expanded,
                            BoolAttr(attrs, "expand_animations", false));
  AnyReader reader;
  // Rows are called one by one where ranks may differ.
  const Column& files = *args[0].column;
  const bool has_frames = is_expanded && files.rows() > 0 &&
                          IsAnimation(files.Row<StringRef>(0)->view());
  return DecodeRows(
      args, result.dtype, has_frames ? 4 : 3, context,
      [&](int64_t, std::string_view contents, RowAppender& to) -> absl::Status {
        PENSTOCK_ASSIGN_OR_RETURN(
            const ImageHead head,
            reader.Head(contents, static_cast<int>(channels), has_frames));
        if (is_expanded && has_frames != IsAnimation(contents)) {
          return absl::InvalidArgumentError(
              "with expand_animations, files that are decoded together must "
              "all be animations, or none; got both");
        }
        std::byte* out =
            has_frames ? to.Begin({head.frames, head.height, head.width,
                                   head.channels})
                       : to.Begin({head.height, head.width, head.channels});
        return reader.ReadAs(contents, head, result.dtype, out);
      });
}

}  // namespace

std::vector<Function> ImageDecodeFunctions() {
  const Param contents = {"contents", ParamKind::kTensor, "",
                          "The bytes of a file."};
  const Param channels = {"channels", ParamKind::kInt, "0",
                          "Those of the result; 0 means the file's own."};
  const Param dtype = {"dtype", ParamKind::kDType, "uint8",
                       "That of the result: uint8 or uint16."};
  const std::vector<Param> jpeg = JpegParams();
  std::vector<Param> jpeg_params = {contents};
  jpeg_params.insert(jpeg_params.end(), jpeg.begin(), jpeg.end());
  std::vector<Param> crop_params = jpeg_params;
  crop_params.insert(crop_params.begin() + 1,
                     {"crop_window", ParamKind::kTensor, "",
                      "y, x, height and width, in pixels of the result."});
  return {
      {.name = "image.decode_jpeg",
       .params = jpeg_params,
       .doc = "The pixels of a JPEG file: height x width x channels of uint8.",
       .example =
           ">>> contents = ps.image.encode_jpeg(np.zeros((2, 3, 3), np.uint8))"
           "\n>>> ps.image.decode_jpeg(contents).shape\n(2, 3, 3)",
       .infer = InferJpeg,
       .eval = EvalJpeg},
      {.name = "image.decode_and_crop_jpeg",
       .params = crop_params,
       .doc = "A part of a JPEG file's pixels; the rest is not decoded.",
       .example =
           ">>> contents = ps.image.encode_jpeg(np.zeros((9, 9, 3), np.uint8))"
           "\n>>> ps.image.decode_and_crop_jpeg(contents, (1, 2, 3, 4)).shape"
           "\n(3, 4, 3)",
       .infer = InferCropJpeg,
       .eval = EvalCropJpeg},
      {.name = "image.is_jpeg",
       .params = {contents},
       .doc = "Whether the bytes begin as those of a JPEG file do.",
       .example = ">>> bool(ps.image.is_jpeg(b\"GIF89a\"))\nFalse",
       .infer = InferIsJpeg,
       .eval = EvalIsJpeg},
      {.name = "image.extract_jpeg_shape",
       .params = {contents,
                  {"output_type", ParamKind::kDType, "int32",
                   "int32 or int64."}},
       .doc = "Height, width and channels that a JPEG file's header says.",
       .example =
           ">>> contents = ps.image.encode_jpeg(np.zeros((2, 3, 3), np.uint8))"
           "\n>>> ps.image.extract_jpeg_shape(contents)"
           "\narray([2, 3, 3], dtype=int32)",
       .infer = InferJpegShape,
       .eval = EvalJpegShape},
      {.name = "image.decode_png",
       .params = {contents, channels, dtype},
       .doc = "The pixels of a PNG file: height x width x channels.",
       .example =
           ">>> contents = ps.image.encode_png(np.zeros((2, 3, 1), np.uint8))"
           "\n>>> ps.image.decode_png(contents, channels=3).shape\n(2, 3, 3)",
       .infer = InferPng,
       .eval = EvalPng},
      {.name = "image.decode_bmp",
       .params = {contents, channels},
       .doc = "The pixels of a BMP file: height x width x channels of uint8.",
       .example =
           ">>> head = b\"BM\" + bytes(8) + b\"\\x36\" + bytes(7)\n"
           ">>> size = b\"\\1\\0\\0\\0\\1\\0\\0\\0\\1\\0\\x18\" + bytes(25)\n"
           ">>> ps.image.decode_bmp(head + size + b\"\\3\\2\\1\\0\")\n"
           "array([[[1, 2, 3]]], dtype=uint8)",
       .infer = InferBmp,
       .eval = EvalBmp},
      {.name = "image.decode_gif",
       .params = {contents},
       .doc = "The frames of a GIF file: frames x height x width x 3 of uint8.",
       .example =
           ">>> gif = "
           "(b\"GIF89a\\1\\0\\1\\0\\x80\\0\\0\\7\\x08\\x09\\0\\0\\0\"\n"
           "...        b\",\\0\\0\\0\\0\\1\\0\\1\\0\\0\\2\\2D\\1\\0;\")\n"
           ">>> ps.image.decode_gif(gif)\n"
           "array([[[[7, 8, 9]]]], dtype=uint8)",
       .infer = InferGif,
       .eval = EvalGif},
      {.name = "image.decode_webp",
       .params = {contents, channels},
       .doc = "The frames of a WebP file: frames x height x width x channels.",
       .example =
           ">>> webp = "
           "(b\"RIFF\\x1a\\0\\0\\0WEBPVP8L\\x0d\\0\\0\\0\\x2f\\0\\0\\0\\x10\"\n"
           "...         b\"\\x07\\x10\\x11\\x11\\x88\\x88\\xfe\\x07\\0\")\n"
           ">>> ps.image.decode_webp(webp).shape\n"
           "(1, 1, 1, 4)",
       .infer = InferWebp,
       .eval = EvalWebp},
      {.name = "image.decode_image",
       .params = {contents,
                  channels,
                  {"dtype", ParamKind::kDType, "uint8",
                   "That of the result: uint8, uint16 or float32 (0 to 1)."},
                  {"expand_animations", ParamKind::kBool, "False",
                   "Whether a GIF or WebP file gives all its frames, in a "
                   "first dimension; otherwise the first frame."}},
       .doc = "The pixels of a JPEG, PNG, GIF, BMP or WebP file, told apart by "
              "its first bytes.",
       .example =
           ">>> contents = ps.image.encode_png(np.zeros((2, 3, 1), np.uint8))"
           "\n>>> ps.image.decode_image(contents).shape\n(2, 3, 1)",
       .infer = InferImage,
       .eval = EvalImage},
  };
}

}  // namespace penstock::functions
