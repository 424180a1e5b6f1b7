// What a function that uses Pillow is recorded as: images of Pillow's modes "L"
// (height x width) and "RGB" (height x width x 3), bit for bit as Pillow has
// them. An error stands for "not known": who calls them asks Pillow then.

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/appender.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/image_jpeg.h"
#include "penstock/functions/image_options.h"
#include "penstock/functions/image_pillow_jpeg.h"
#include "penstock/functions/image_pillow_resize.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

// Sides of an image, at most: those of Pillow's own limits are below it.
constexpr int64_t kMaxSide = int64_t{1} << 24;

// ---- Modes

absl::StatusOr<int> ChannelsOf(std::string_view mode) {
  if (mode == "L") return 1;
  if (mode == "RGB") return 3;
  return absl::InvalidArgumentError(absl::StrCat(
      "mode must be \"L\" or \"RGB\"; got \"", std::string(mode), "\""));
}

absl::StatusOr<int> ModeAttr(const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view mode,
                            TextAttr(attrs, "mode"));
  return ChannelsOf(mode);
}

TensorSpec SpecOf(int channels, std::optional<int64_t> height = {},
                  std::optional<int64_t> width = {}) {
  if (channels == 3) return ImageSpec(DType::kUint8, height, width, 3);
  return {DType::kUint8, PartialShape(PartialShape::Dims{height, width})};
}

void Convert(const uint8_t* from, int channels, int64_t pixels, uint8_t* out) {
  if (channels == 1) {
    for (int64_t i = 0; i < pixels; ++i) {
      out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = from[i];
    }
    return;
  }
  for (int64_t i = 0; i < pixels; ++i, from += 3) {
    out[i] = static_cast<uint8_t>(
        (from[0] * 19595U + from[1] * 38470U + from[2] * 7471U + 0x8000U) >>
        16);
  }
}

// ---- Sizes

struct Resize {
  PillowResizer::Size size;
  PillowFilter filter = PillowFilter::kNearest;
  PillowResizer::Order order = PillowResizer::Order::kX;
};

// Nothing if there is no "size".
absl::StatusOr<std::optional<Resize>> ResizeAttr(const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Ints> size,
                            AxisAttr(attrs, "size"));
  if (!size) return std::nullopt;
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t filter, IntAttr(attrs, "filter", 0));
  if (filter < 0 || filter >= kPillowFilters) {
    return absl::InvalidArgumentError(
        absl::StrCat("filter must be in [0, 5]; got ", filter));
  }
  if (size->size() != 2 || (*size)[0] < 1 || (*size)[1] < 1 ||
      (*size)[0] > kMaxSide || (*size)[1] > kMaxSide) {
    return absl::InvalidArgumentError(absl::StrCat(
        "size must be a width and a height above 0; got ", ToString(*size)));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const bool is_by_size,
                            BoolAttr(attrs, "order_by_size", false));
  return Resize{
      {(*size)[1], (*size)[0]},
      static_cast<PillowFilter>(filter),
      is_by_size ? PillowResizer::Order::kBySize : PillowResizer::Order::kX};
}

absl::Status CheckImage(const ArgSpec& arg) {
  const bool is_image =
      arg.spec.dtype == DType::kUint8 && arg.spec.shape.has_rank() &&
      (arg.spec.shape.rank() == 2 ||
       (arg.spec.shape.rank() == 3 && arg.spec.shape.dims()[2] == 3));
  if (is_image) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "expected an image of mode \"L\" or \"RGB\"; got ", arg.spec.ToString()));
}

absl::Status CheckResize(PillowResizer::Size from, int channels,
                         const Resize& resize) {
  // Versions of Pillow differ in how they resize images that are this tall.
  if (from.height > 100 * from.width) {
    return absl::InvalidArgumentError("the image is too tall");
  }
  if (!PillowResizer::Fits(from, channels, resize.size)) {
    return absl::InvalidArgumentError("the image is resized too far");
  }
  return absl::OkStatus();
}

Shape ShapeOf(int channels, int64_t height, int64_t width) {
  if (channels == 1) return {height, width};
  return {height, width, channels};
}

// ---- Files

struct OpenAttrs {
  std::optional<int> file_channels;  // no others are known
  bool has_no_orientation = false;   // likewise
  int64_t max_pixels = 0;
};

absl::StatusOr<OpenAttrs> ReadOpenAttrs(const Attrs& attrs) {
  OpenAttrs own;
  PENSTOCK_ASSIGN_OR_RETURN(own.max_pixels, IntAttr(attrs, "max_pixels", 0));
  PENSTOCK_ASSIGN_OR_RETURN(own.has_no_orientation,
                            BoolAttr(attrs, "has_no_orientation", false));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view mode,
                            TextAttr(attrs, "file_mode"));
  if (!mode.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(own.file_channels, ChannelsOf(mode));
  }
  return own;
}

absl::StatusOr<PillowJpeg> ReadHead(std::string_view contents,
                                    const OpenAttrs& own) {
  PENSTOCK_ASSIGN_OR_RETURN(const PillowJpeg head, ReadPillowHeader(contents));
  if (own.file_channels.value_or(head.channels) != head.channels) {
    return absl::InvalidArgumentError("the image has another mode");
  }
  if (own.has_no_orientation && !head.has_no_orientation) {
    return absl::InvalidArgumentError("the image may have to be turned");
  }
  if (head.height * head.width > own.max_pixels) {
    return absl::InvalidArgumentError("the image has too many pixels");
  }
  return head;
}

// The rows of a file on their way: converted to the mode asked for, and resized
// if they are to be.
class OpenedRows final : public JpegRows {
 public:
  OpenedRows(int channels, const std::optional<Resize>& resize)
      : channels_(channels), resize_(resize) {
    if (resize) resizer_.emplace(resize->filter, resize->order);
  }

  void SetImage(const PillowJpeg& head, uint8_t* out) {
    head_ = head;
    out_ = out;
    if (is_converted()) lines_.resize(kPillowRows * line_bytes());
  }

  void Begin() override {
    row_ = 0;
    if (resizer_) {
      resizer_->Begin({head_.height, head_.width}, channels_, resize_->size,
                      out_);
    }
  }

  absl::Span<uint8_t* const> places() override {
    if (resizer_ && !is_converted()) return resizer_->places();
    const int64_t count = std::min<int64_t>(kPillowRows, head_.height - row_);
    for (int64_t i = 0; i < count; ++i) {
      places_[i] = is_converted() ? lines_.data() + i * line_bytes() : Row(i);
    }
    return {places_, static_cast<size_t>(count)};
  }

  void Commit() override {
    const int64_t count = std::min<int64_t>(kPillowRows, head_.height - row_);
    if (is_converted()) {
      for (int64_t i = 0; i < count; ++i) {
        Convert(lines_.data() + i * line_bytes(), head_.channels, head_.width,
                resizer_ ? resizer_->places()[i] : Row(i));
      }
    }
    if (resizer_) resizer_->Commit();
    row_ += count;
  }

 private:
  bool is_converted() const { return head_.channels != channels_; }
  int64_t line_bytes() const { return head_.width * head_.channels; }
  // Of the result, from the next one on.
  uint8_t* Row(int64_t i) const {
    return out_ + (row_ + i) * head_.width * channels_;
  }

  const int channels_;
  const std::optional<Resize> resize_;
  std::optional<PillowResizer> resizer_;
  PillowJpeg head_;
  uint8_t* out_ = nullptr;
  int64_t row_ = 0;
  std::vector<uint8_t> lines_;
  uint8_t* places_[kPillowRows] = {};
};

std::string_view Contents(const Arg& arg, int64_t row) {
  return arg.column->Row<StringRef>(RowIndex(arg, row))->view();
}

absl::StatusOr<TensorSpec> InferOpen(absl::Span<const ArgSpec> args,
                                     const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckContents("pillow_open", args[0]));
  PENSTOCK_RETURN_IF_ERROR(ReadOpenAttrs(attrs).status());
  PENSTOCK_ASSIGN_OR_RETURN(const int channels, ModeAttr(attrs));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Resize> resize,
                            ResizeAttr(attrs));
  if (!resize) return SpecOf(channels);
  return SpecOf(channels, resize->size.height, resize->size.width);
}

absl::StatusOr<Column> EvalOpen(absl::Span<const Arg> args, const Attrs& attrs,
                                const TensorSpec& result,
                                EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const OpenAttrs own, ReadOpenAttrs(attrs));
  PENSTOCK_ASSIGN_OR_RETURN(const int channels, ModeAttr(attrs));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Resize> resize,
                            ResizeAttr(attrs));
  const int64_t rows = ResultRows(args, context);
  RowAppender appender(DType::kUint8, result.shape.rank(), rows, context);
  JpegReader reader;
  OpenedRows opened(channels, resize);
  auto open = [&](std::string_view contents) -> absl::Status {
    PENSTOCK_ASSIGN_OR_RETURN(const PillowJpeg head, ReadHead(contents, own));
    JpegOptions options;
    options.channels = head.channels;
    options.is_accurate = true;
    PENSTOCK_RETURN_IF_ERROR(reader.Open(contents, options));
    if (reader.height() != head.height || reader.width() != head.width) {
      return absl::InvalidArgumentError("the header says two sizes");
    }
    if (resize) {
      PENSTOCK_RETURN_IF_ERROR(
          CheckResize({head.height, head.width}, channels, *resize));
    }
    const PillowResizer::Size size =
        resize ? resize->size : PillowResizer::Size{head.height, head.width};
    const Shape shape = ShapeOf(channels, size.height, size.width);
    PENSTOCK_RETURN_IF_ERROR(CheckElementSize(shape, DType::kUint8));
    opened.SetImage(head, reinterpret_cast<uint8_t*>(appender.Begin(shape)));
    return reader.ReadStrictly(opened);
  };
  for (int64_t row = 0; row < rows; ++row) {
    absl::Status status = open(Contents(args[0], row));
    if (status.ok()) {
      appender.Commit();
    } else {
      appender.Fail(context, std::move(status));
    }
  }
  return std::move(appender).Finish();
}

absl::StatusOr<TensorSpec> InferSizeOf(absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckContents("pillow_size", args[0]));
  PENSTOCK_RETURN_IF_ERROR(ReadOpenAttrs(attrs).status());
  return TensorSpec{DType::kInt64, PartialShape(PartialShape::Dims{2})};
}

absl::StatusOr<Column> EvalSizeOf(absl::Span<const Arg> args,
                                  const Attrs& attrs, const TensorSpec&,
                                  EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const OpenAttrs own, ReadOpenAttrs(attrs));
  const int64_t rows = ResultRows(args, context);
  Buffer sizes = Buffer::Allocate(rows * 2 * sizeof(int64_t));
  auto* size = sizes.MutableAs<int64_t>();
  for (int64_t row = 0; row < rows; ++row, size += 2) {
    absl::StatusOr<PillowJpeg> head = ReadHead(Contents(args[0], row), own);
    if (!head.ok()) {
      ReportRow(context, row, head.status());
      head = PillowJpeg();
    }
    size[0] = head->width;
    size[1] = head->height;
  }
  return Column::Dense(DType::kInt64, {2}, rows, std::move(sizes));
}

// ---- Images

absl::StatusOr<TensorSpec> InferResized(absl::Span<const ArgSpec> args,
                                        const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckImage(args[0]));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Resize> resize,
                            ResizeAttr(attrs));
  if (!resize) return absl::InvalidArgumentError("size must be given");
  return SpecOf(args[0].spec.shape.rank() == 2 ? 1 : 3, resize->size.height,
                resize->size.width);
}

absl::StatusOr<Column> EvalResized(absl::Span<const Arg> args,
                                   const Attrs& attrs, const TensorSpec&,
                                   EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Resize> resize,
                            ResizeAttr(attrs));
  const Column& images = *args[0].column;
  const int channels = images.rank() == 2 ? 1 : 3;
  PillowResizer resizer(resize->filter, resize->order);
  return MakeRows(
      DType::kUint8, images.rank(), ResultRows(args, context),
      HasOneShape(args[0]), {}, context,
      [&](int64_t row, int64_t* dims) {
        const absl::Span<const int64_t> shape =
            images.RowShape(RowIndex(args[0], row));
        const Shape wanted =
            ShapeOf(channels, resize->size.height, resize->size.width);
        std::copy(wanted.begin(), wanted.end(), dims);
        if (NumItems(shape) == 0) {
          return absl::InvalidArgumentError("the image has no pixels");
        }
        return CheckResize({shape[0], shape[1]}, channels, *resize);
      },
      [&](int64_t row, absl::Span<const int64_t>, std::byte* out) {
        const int64_t from = RowIndex(args[0], row);
        const absl::Span<const int64_t> shape = images.RowShape(from);
        const int64_t bytes = shape[1] * channels;
        const auto* data =
            reinterpret_cast<const uint8_t*>(images.RowData(from));
        resizer.Begin({shape[0], shape[1]}, channels, resize->size,
                      reinterpret_cast<uint8_t*>(out));
        while (true) {
          const absl::Span<uint8_t* const> places = resizer.places();
          if (places.empty()) return;
          for (uint8_t* place : places) {
            std::memcpy(place, data, bytes);
            data += bytes;
          }
          resizer.Commit();
        }
      });
}

absl::StatusOr<TensorSpec> InferConverted(absl::Span<const ArgSpec> args,
                                          const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckImage(args[0]));
  PENSTOCK_ASSIGN_OR_RETURN(const int channels, ModeAttr(attrs));
  const PartialShape& shape = args[0].spec.shape;
  if (channels == (shape.rank() == 2 ? 1 : 3)) {
    return absl::InvalidArgumentError("the image has this mode already");
  }
  return SpecOf(channels, shape.dims()[0], shape.dims()[1]);
}

absl::StatusOr<Column> EvalConverted(absl::Span<const Arg> args,
                                     const Attrs& attrs, const TensorSpec&,
                                     EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const int channels, ModeAttr(attrs));
  const Column& images = *args[0].column;
  return MakeRows(
      DType::kUint8, channels == 1 ? 2 : 3, ResultRows(args, context),
      HasOneShape(args[0]), {}, context,
      [&](int64_t row, int64_t* dims) {
        const absl::Span<const int64_t> shape =
            images.RowShape(RowIndex(args[0], row));
        const Shape wanted = ShapeOf(channels, shape[0], shape[1]);
        std::copy(wanted.begin(), wanted.end(), dims);
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        Convert(reinterpret_cast<const uint8_t*>(
                    images.RowData(RowIndex(args[0], row))),
                channels == 1 ? 3 : 1, shape[0] * shape[1],
                reinterpret_cast<uint8_t*>(out));
      });
}

absl::Status CheckBox(absl::Span<const int64_t> box) {
  if (box.size() != 4) {
    return absl::InvalidArgumentError("a box must have 4 numbers");
  }
  for (const int64_t side : box) {
    if (side > kMaxSide || side < -kMaxSide) {
      return absl::InvalidArgumentError("the box is too large");
    }
  }
  if (box[2] > box[0] && box[3] > box[1]) return absl::OkStatus();
  return absl::InvalidArgumentError("the box has no pixels");
}

// Width and height that a box must have; nothing if they differ.
absl::StatusOr<std::optional<Ints>> BoxSizeAttr(const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Ints> size,
                            AxisAttr(attrs, "size"));
  if (!size || size->size() == 2) return size;
  return absl::InvalidArgumentError("size must be a width and a height");
}

absl::StatusOr<TensorSpec> InferCropped(absl::Span<const ArgSpec> args,
                                        const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckImage(args[0]));
  PENSTOCK_RETURN_IF_ERROR(CheckInts("box", args[1], 1));
  const int channels = args[0].spec.shape.rank() == 2 ? 1 : 3;
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Ints> size, BoxSizeAttr(attrs));
  if (size) return SpecOf(channels, (*size)[1], (*size)[0]);
  return SpecOf(channels);
}

absl::StatusOr<Column> EvalCropped(absl::Span<const Arg> args,
                                   const Attrs& attrs, const TensorSpec&,
                                   EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t max_pixels,
                            IntAttr(attrs, "max_pixels", 0));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Ints> size, BoxSizeAttr(attrs));
  const Column& images = *args[0].column;
  const int channels = images.rank() == 2 ? 1 : 3;
  return MakeRows(
      DType::kUint8, images.rank(), ResultRows(args, context), false, {},
      context,
      [&](int64_t row, int64_t* dims) -> absl::Status {
        const Ints box = ReadInts(*args[1].column, RowIndex(args[1], row));
        PENSTOCK_RETURN_IF_ERROR(CheckBox(box));
        const int64_t width = box[2] - box[0];
        const int64_t height = box[3] - box[1];
        if (height * width > max_pixels) {
          return absl::InvalidArgumentError("the box has too many pixels");
        }
        if (size && (width != (*size)[0] || height != (*size)[1])) {
          return absl::InvalidArgumentError("the box has another size");
        }
        const Shape wanted = ShapeOf(channels, height, width);
        std::copy(wanted.begin(), wanted.end(), dims);
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> to, std::byte* out) {
        const int64_t from = RowIndex(args[0], row);
        const absl::Span<const int64_t> shape = images.RowShape(from);
        const Ints box = ReadInts(*args[1].column, RowIndex(args[1], row));
        // What is outside the image is black.
        const int64_t left = std::clamp<int64_t>(box[0], 0, shape[1]);
        const int64_t right = std::clamp<int64_t>(box[2], left, shape[1]);
        for (int64_t y = 0; y < to[0]; ++y) {
          std::byte* line = out + y * to[1] * channels;
          std::memset(line, 0, to[1] * channels);
          if (box[1] + y < 0 || box[1] + y >= shape[0] || left == right) {
            continue;
          }
          std::memcpy(line + (left - box[0]) * channels,
                      images.RowData(from) +
                          ((box[1] + y) * shape[1] + left) * channels,
                      (right - left) * channels);
        }
      });
}

}  // namespace

std::vector<Function> ImagePillowFunctions() {
  const Param contents = {"contents", ParamKind::kTensor, "",
                          "The bytes of a file."};
  const Param image = {"image", ParamKind::kTensor, "",
                       "height x width, or height x width x 3, of uint8."};
  const Param mode = {"mode", ParamKind::kText, "", "\"L\" or \"RGB\"."};
  const Param max_pixels = {"max_pixels", ParamKind::kInt, "",
                            "Larger images are not known."};
  const Param file_mode = {"file_mode", ParamKind::kText, "\"\"",
                           "Files of others are not known; empty: any."};
  const Param size = {"size", ParamKind::kAxis, "None", "Width and height."};
  const Param filter = {"filter", ParamKind::kInt, "0",
                        "A number of PIL.Image.Resampling."};
  const Param order = {"order_by_size", ParamKind::kBool, "False",
                       "Which side is resized first: that of Pillow 13."};
  const Param has_no_orientation = {
      "has_no_orientation", ParamKind::kBool, "False",
      "Files that may say how to turn them are not known."};
  return {
      {.name = "image.pillow_open",
       .params = {contents, mode, max_pixels, file_mode, has_no_orientation,
                  size, filter, order},
       .doc = "Image.open(), convert() and perhaps resize().",
       .example = "",
       .infer = InferOpen,
       .eval = EvalOpen,
       .is_internal = true},
      {.name = "image.pillow_size",
       .params = {contents, max_pixels, file_mode, has_no_orientation},
       .doc = "Width and height of an opened file.",
       .example = "",
       .infer = InferSizeOf,
       .eval = EvalSizeOf,
       .is_internal = true},
      {.name = "image.pillow_resize",
       .params = {image, size, filter, order},
       .doc = "Image.resize().",
       .example = "",
       .infer = InferResized,
       .eval = EvalResized,
       .is_internal = true},
      {.name = "image.pillow_convert",
       .params = {image, mode},
       .doc = "Image.convert() to the other mode.",
       .example = "",
       .infer = InferConverted,
       .eval = EvalConverted,
       .is_internal = true},
      {.name = "image.pillow_crop",
       .params = {image,
                  {"box", ParamKind::kTensor, "",
                   "Left, upper, right and lower."},
                  max_pixels,
                  size},
       .doc = "Image.crop().",
       .example = "",
       .infer = InferCropped,
       .eval = EvalCropped,
       .is_internal = true},
  };
}

}  // namespace penstock::functions
