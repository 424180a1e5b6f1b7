#include "penstock/functions/image_random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/appender.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/cast.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/image_jpeg.h"
#include "penstock/functions/image_options.h"
#include "penstock/functions/image_resize.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

struct Range {
  double low;
  double high;
};

absl::StatusOr<Range> RangeAttr(const Attrs& attrs, const char* name,
                                Range otherwise, double most) {
  const auto at = attrs.find(name);
  Range range = otherwise;
  if (at != attrs.end() && !std::holds_alternative<None>(at->second)) {
    const auto* floats = std::get_if<std::vector<double>>(&at->second);
    const auto* ints = std::get_if<std::vector<int64_t>>(&at->second);
    if (floats != nullptr && floats->size() == 2) {
      range = {(*floats)[0], (*floats)[1]};
    } else if (ints != nullptr && ints->size() == 2) {
      range = {static_cast<double>((*ints)[0]),
               static_cast<double>((*ints)[1])};
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " must be two floats"));
    }
  }
  if (range.low > 0 && range.low <= range.high && range.high <= most) {
    return range;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      name, " must be two floats above 0 in ascending order",
      most < 2 ? ", at most 1" : "", "; got ", range.low, ", ", range.high));
}

constexpr double kAny = 1e9;

struct CropAttrs {
  Range scale = {0.08, 1};
  Range ratio = {3.0 / 4, 4.0 / 3};
  int64_t seed = 0;
  bool antialias = false;
};

absl::StatusOr<CropAttrs> ReadCropAttrs(const Attrs& attrs) {
  CropAttrs own;
  PENSTOCK_ASSIGN_OR_RETURN(own.scale, RangeAttr(attrs, "scale", own.scale, 1));
  PENSTOCK_ASSIGN_OR_RETURN(own.ratio,
                            RangeAttr(attrs, "ratio", own.ratio, kAny));
  PENSTOCK_ASSIGN_OR_RETURN(own.seed, IntAttr(attrs, "seed", 0));
  PENSTOCK_ASSIGN_OR_RETURN(own.antialias, BoolAttr(attrs, "antialias", false));
  return own;
}

// A window of a random area and shape (its logarithm even), anywhere; after ten
// that do not fit, the largest in the middle.
CropWindow DrawWindow(int64_t height, int64_t width, const CropAttrs& own,
                      Draws& draws) {
  const auto area = static_cast<double>(height * width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * draws.Between(own.scale.low, own.scale.high);
    const double ratio = std::exp(
        draws.Between(std::log(own.ratio.low), std::log(own.ratio.high)));
    const int64_t w = std::llround(std::sqrt(target * ratio));
    const int64_t h = std::llround(std::sqrt(target / ratio));
    if (w >= 1 && h >= 1 && w <= width && h <= height) {
      const int64_t y = draws.Below(height - h + 1);
      const int64_t x = draws.Below(width - w + 1);
      return {y, x, h, w};
    }
  }
  int64_t w = width;
  int64_t h = height;
  const double shape = static_cast<double>(width) / static_cast<double>(height);
  if (shape < own.ratio.low) {
    h = std::llround(static_cast<double>(w) / own.ratio.low);
  } else if (shape > own.ratio.high) {
    w = std::llround(static_cast<double>(h) * own.ratio.high);
  }
  h = std::clamp<int64_t>(h, 1, height);
  w = std::clamp<int64_t>(w, 1, width);
  return {(height - h) / 2, (width - w) / 2, h, w};
}

absl::StatusOr<TensorSpec> InferResizedCrop(absl::Span<const ArgSpec> args,
                                            const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckImages("random_resized_crop", args[0], false));
  PENSTOCK_RETURN_IF_ERROR(ReadCropAttrs(attrs).status());
  PENSTOCK_ASSIGN_OR_RETURN(const PartialSize size,
                            InferSize("random_resized_crop", args[1]));
  return ImageSpec(DType::kFloat32, size.height, size.width,
                   args[0].spec.shape.dims()[2]);
}

absl::StatusOr<Column> EvalResizedCrop(absl::Span<const Arg> args,
                                       const Attrs& attrs, const TensorSpec&,
                                       EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const CropAttrs own, ReadCropAttrs(attrs));
  const Column& images = *args[0].column;
  const size_t item_bytes = ItemSize(images.dtype());
  Resizer resizer(ResizeMethod::kBilinear, own.antialias);
  return MakeRows(
      DType::kFloat32, 3, context.rows,
      HasOneShape(args[0]) && args[1].is_uniform, {}, context,
      [&](int64_t row, int64_t* dims) -> absl::Status {
        PENSTOCK_ASSIGN_OR_RETURN(const ImageSize size, ReadSize(args[1], row));
        const absl::Span<const int64_t> shape =
            images.RowShape(RowIndex(args[0], row));
        if (shape[0] < 1 || shape[1] < 1) {
          return absl::InvalidArgumentError(
              absl::StrCat("random_resized_crop needs an image with pixels; "
                           "got ",
                           ToString(shape)));
        }
        dims[0] = size.height;
        dims[1] = size.width;
        dims[2] = shape[2];
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        const int64_t from = RowIndex(args[0], row);
        const ImageDims dims(images.RowShape(from));
        Draws draws(context, own.seed, row);
        const CropWindow crop = DrawWindow(dims.height, dims.width, own, draws);
        const int64_t row_items = dims.width * dims.channels;
        const std::byte* data =
            images.RowData(from) +
            (crop.y * row_items + crop.x * dims.channels) * item_bytes;
        resizer.Resize({data, images.dtype(), crop.height, crop.width,
                        dims.channels, row_items},
                       shape[0], shape[1], reinterpret_cast<float*>(out));
      });
}

// `ratio` has another meaning here than for other JPEG functions.
absl::StatusOr<JpegOptions> ChannelsOnly(Attrs attrs) {
  attrs.erase("ratio");
  return JpegAttrs(attrs);
}

absl::StatusOr<TensorSpec> InferDecodeCrop(absl::Span<const ArgSpec> args,
                                           const Attrs& attrs) {
  constexpr std::string_view kName = "decode_random_resized_crop";
  PENSTOCK_RETURN_IF_ERROR(CheckContents(kName, args[0]));
  PENSTOCK_RETURN_IF_ERROR(ReadCropAttrs(attrs).status());
  PENSTOCK_ASSIGN_OR_RETURN(const JpegOptions options, ChannelsOnly(attrs));
  PENSTOCK_ASSIGN_OR_RETURN(const PartialSize size, InferSize(kName, args[1]));
  return ImageSpec(
      DType::kFloat32, size.height, size.width,
      options.channels == 0 ? std::optional<int64_t>() : options.channels);
}

absl::StatusOr<Column> EvalDecodeCrop(absl::Span<const Arg> args,
                                      const Attrs& attrs, const TensorSpec&,
                                      EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const CropAttrs own, ReadCropAttrs(attrs));
  PENSTOCK_ASSIGN_OR_RETURN(const JpegOptions options, ChannelsOnly(attrs));
  Resizer resizer(ResizeMethod::kBilinear, own.antialias);
  JpegReader reader;
  std::vector<uint8_t> pixels;
  RowAppender appender(DType::kFloat32, 3, context.rows, context);
  auto decode = [&](int64_t row) -> absl::Status {
    const std::string_view contents =
        args[0].column->Row<StringRef>(RowIndex(args[0], row))->view();
    PENSTOCK_ASSIGN_OR_RETURN(const ImageSize size, ReadSize(args[1], row));
    PENSTOCK_RETURN_IF_ERROR(reader.Open(contents, options));
    const int64_t shape[] = {size.height, size.width, reader.channels()};
    PENSTOCK_RETURN_IF_ERROR(CheckElementSize(shape, DType::kFloat32));
    Draws draws(context, own.seed, row);
    const CropWindow crop =
        DrawWindow(reader.height(), reader.width(), own, draws);
    const int64_t row_items = crop.width * reader.channels();
    pixels.resize(crop.height * row_items);
    PENSTOCK_RETURN_IF_ERROR(
        reader.ReadCrop(crop, /*is_exact=*/true, pixels.data()));
    resizer.Resize({pixels.data(), DType::kUint8, crop.height, crop.width,
                    reader.channels(), row_items},
                   size.height, size.width,
                   reinterpret_cast<float*>(appender.Begin(shape)));
    return absl::OkStatus();
  };
  for (int64_t row = 0; row < context.rows; ++row) {
    absl::Status status = decode(row);
    if (status.ok()) {
      appender.Commit();
    } else {
      appender.Fail(context, std::move(status));
    }
  }
  return std::move(appender).Finish();
}

// ---- sample_distorted_bounding_box

struct BoxAttrs {
  double min_object_covered = 0.1;
  Range aspect = {0.75, 1.33};
  Range area = {0.05, 1};
  int64_t max_attempts = 100;
  bool use_image = false;
  int64_t seed = 0;
};

absl::StatusOr<BoxAttrs> ReadBoxAttrs(const Attrs& attrs) {
  BoxAttrs own;
  PENSTOCK_ASSIGN_OR_RETURN(
      own.min_object_covered,
      FloatAttr(attrs, "min_object_covered", own.min_object_covered));
  PENSTOCK_ASSIGN_OR_RETURN(
      own.aspect, RangeAttr(attrs, "aspect_ratio_range", own.aspect, kAny));
  PENSTOCK_ASSIGN_OR_RETURN(own.area,
                            RangeAttr(attrs, "area_range", own.area, 1));
  PENSTOCK_ASSIGN_OR_RETURN(own.max_attempts,
                            IntAttr(attrs, "max_attempts", own.max_attempts));
  PENSTOCK_ASSIGN_OR_RETURN(
      own.use_image, BoolAttr(attrs, "use_image_if_no_bounding_boxes", false));
  PENSTOCK_ASSIGN_OR_RETURN(own.seed, IntAttr(attrs, "seed", 0));
  if (own.max_attempts < 1 || own.max_attempts > 100000 ||
      own.min_object_covered < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_attempts must be from 1 to 100000 and min_object_covered not "
        "negative; got ",
        own.max_attempts, " and ", own.min_object_covered));
  }
  return own;
}

// A window of the wanted area and shape, if there is one with whole pixels.
bool DrawDistorted(int64_t height, int64_t width, const BoxAttrs& own,
                   Draws& draws, CropWindow& crop) {
  const double ratio = draws.Between(own.aspect.low, own.aspect.high);
  const auto area = static_cast<double>(height * width);
  const double min_area = own.area.low * area;
  const double max_area = own.area.high * area;
  int64_t h = std::llround(std::sqrt(min_area / ratio));
  int64_t max_h = std::llround(std::sqrt(max_area / ratio));
  auto width_of = [&](int64_t rows) {
    return std::llround(static_cast<double>(rows) * ratio);
  };
  if (width_of(max_h) > width) {
    max_h =
        static_cast<int64_t>((static_cast<double>(width) + 0.5 - 1e-7) / ratio);
    if (width_of(max_h) > width) --max_h;
  }
  max_h = std::min(max_h, height);
  h = std::min(h, max_h);
  if (h < max_h) h += draws.Below(max_h - h + 1);
  const int64_t w = width_of(h);
  const auto made = static_cast<double>(w * h);
  if (made < min_area || made > max_area || w < 1 || h < 1 || w > width ||
      h > height) {
    return false;
  }
  crop = {draws.Below(height - h + 1), draws.Below(width - w + 1), h, w};
  return true;
}

// Whether the window holds the wanted part of any box (4 floats: ymin, xmin,
// ymax, xmax, from 0 to 1).
bool Covers(const CropWindow& crop, int64_t height, int64_t width,
            const float* boxes, int64_t count, double least) {
  for (int64_t i = 0; i < count; ++i, boxes += 4) {
    const double top = boxes[0] * static_cast<double>(height);
    const double left = boxes[1] * static_cast<double>(width);
    const double bottom = boxes[2] * static_cast<double>(height);
    const double right = boxes[3] * static_cast<double>(width);
    const double h =
        std::min(bottom, static_cast<double>(crop.y + crop.height)) -
        std::max(top, static_cast<double>(crop.y));
    const double w = std::min(right, static_cast<double>(crop.x + crop.width)) -
                     std::max(left, static_cast<double>(crop.x));
    const double area = (bottom - top) * (right - left);
    if (h > 0 && w > 0 && area > 0 && h * w >= least * area) return true;
  }
  return false;
}

absl::StatusOr<std::vector<TensorSpec>> InferBoxes(
    absl::Span<const ArgSpec> args, const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckInts("image_size", args[0], 1));
  PENSTOCK_RETURN_IF_ERROR(ReadBoxAttrs(attrs).status());
  const PartialShape& boxes = args[1].spec.shape;
  if (!IsFloat(args[1].spec.dtype) || !boxes.has_rank() || boxes.rank() != 3 ||
      boxes.dims()[2].value_or(4) != 4) {
    return absl::InvalidArgumentError(absl::StrCat(
        "bounding_boxes must be floats of shape (1, boxes, 4); got ",
        args[1].spec.ToString()));
  }
  return std::vector<TensorSpec>{
      {args[0].spec.dtype, PartialShape(PartialShape::Dims{3})},
      {args[0].spec.dtype, PartialShape(PartialShape::Dims{3})},
      {DType::kFloat32, PartialShape(PartialShape::Dims{1, 1, 4})}};
}

absl::StatusOr<CropWindow> SampleBox(absl::Span<const int64_t> size,
                                     const float* boxes,
                                     absl::Span<const int64_t> shape,
                                     const BoxAttrs& own, Draws draws) {
  constexpr int64_t kMost = int64_t{1} << 24;
  if (size.size() != 3 || size[0] < 1 || size[1] < 1 || size[0] > kMost ||
      size[1] > kMost) {
    return absl::InvalidArgumentError(absl::StrCat(
        "image_size must be height, width and channels; got ", ToString(size)));
  }
  int64_t count = shape[0] * shape[1];
  if (count == 0 && !own.use_image) {
    return absl::InvalidArgumentError(
        "no bounding boxes; set use_image_if_no_bounding_boxes=True to take "
        "the whole image for one");
  }
  const float whole[] = {0, 0, 1, 1};
  if (count == 0) boxes = whole, count = 1;
  for (int64_t i = 0; i < count * 4; ++i) {
    if (!(boxes[i] >= 0 && boxes[i] <= 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("bounding boxes must be from 0 to 1; got ", boxes[i]));
    }
  }
  CropWindow crop;
  for (int64_t attempt = 0; attempt < own.max_attempts; ++attempt) {
    if (DrawDistorted(size[0], size[1], own, draws, crop) &&
        Covers(crop, size[0], size[1], boxes, count, own.min_object_covered)) {
      return crop;
    }
  }
  return CropWindow{0, 0, size[0], size[1]};
}

absl::StatusOr<std::vector<Column>> EvalBoxes(
    absl::Span<const Arg> args, const Attrs& attrs,
    absl::Span<const TensorSpec> results, EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const BoxAttrs own, ReadBoxAttrs(attrs));
  const Column boxes = Cast(*args[1].column, DType::kFloat32);
  Buffer begins = Buffer::Allocate(context.rows * 3 * sizeof(int64_t));
  Buffer sizes = Buffer::Allocate(context.rows * 3 * sizeof(int64_t));
  Buffer made = Buffer::Allocate(context.rows * 4 * sizeof(float));
  for (int64_t row = 0; row < context.rows; ++row) {
    const Ints size = ReadInts(*args[0].column, RowIndex(args[0], row));
    const int64_t box = RowIndex(args[1], row);
    absl::StatusOr<CropWindow> crop =
        SampleBox(size, boxes.Row<float>(box), boxes.RowShape(box), own,
                  Draws(context, own.seed, row));
    const CropWindow window = crop.ok() ? *crop : CropWindow{};
    if (!crop.ok()) ReportRow(context, row, std::move(crop).status());
    int64_t* begin = begins.MutableAs<int64_t>() + 3 * row;
    begin[0] = window.y, begin[1] = window.x, begin[2] = 0;
    int64_t* extent = sizes.MutableAs<int64_t>() + 3 * row;
    extent[0] = window.height, extent[1] = window.width, extent[2] = -1;
    const float h = size.empty() ? 1.0F : static_cast<float>(size[0]);
    const float w = size.size() < 2 ? 1.0F : static_cast<float>(size[1]);
    float* to = made.MutableAs<float>() + 4 * row;
    to[0] = static_cast<float>(window.y) / h;
    to[1] = static_cast<float>(window.x) / w;
    to[2] = static_cast<float>(window.y + window.height) / h;
    to[3] = static_cast<float>(window.x + window.width) / w;
  }
  std::vector<Column> columns;
  for (Buffer* buffer : {&begins, &sizes}) {
    columns.push_back(Cast(
        Column::Dense(DType::kInt64, {3}, context.rows, std::move(*buffer)),
        results[0].dtype));
  }
  columns.push_back(
      Column::Dense(DType::kFloat32, {1, 1, 4}, context.rows, std::move(made)));
  return columns;
}

}  // namespace

std::vector<Function> ImageRandomFunctions() {
  const Param size = {"size", ParamKind::kTensor, "",
                      "Height and width of the result."};
  const Param scale = {"scale", ParamKind::kFloats, "(0.08, 1.0)",
                       "The part of the image's area, from and to."};
  const Param ratio = {"ratio", ParamKind::kFloats, "(3 / 4, 4 / 3)",
                       "Width by height of the part, from and to."};
  const Param antialias = {
      "antialias", ParamKind::kBool, "False",
      "Averages over all pixels that a smaller image leaves out."};
  const Param& seed = kSeedParam;
  return {
      {.name = "image.random_resized_crop",
       .params = {{"image", ParamKind::kTensor, "",
                   "height x width x channels."},
                  size,
                  scale,
                  ratio,
                  antialias,
                  seed},
       .doc =
           "A part of an image, of random area, shape and place, resized."
           "\nThe result is float32 in the image's own range: of uint8, 0 to "
           "255. Colours are changed before, or after a division by 255.",
       .example =
           ">>> image = np.zeros((9, 9, 3))\n"
           ">>> ps.image.random_resized_crop(image, (4, 4)).shape\n(4, 4, 3)",
       .is_random = true,
       .infer = InferResizedCrop,
       .eval = EvalResizedCrop},
      {.name = "image.decode_random_resized_crop",
       .params = {{"contents", ParamKind::kTensor, "",
                   "The bytes of a JPEG file."},
                  size,
                  scale,
                  ratio,
                  {"channels", ParamKind::kInt, "3",
                   "Those of the result: 1 (gray), 3 (RGB), or 0: the file's "
                   "own."},
                  antialias,
                  seed},
       .doc = "random_resized_crop of a JPEG file, of which only that part is "
              "decoded.\nThe result is float32 from 0 to 255: divide it by 255 "
              "before colours are changed, and for what was trained on 0 to 1.",
       .example =
           ">>> contents = ps.image.encode_jpeg(np.zeros((9, 9, 3), np.uint8))"
           "\n>>> ps.image.decode_random_resized_crop(contents, (4, 4)).shape"
           "\n(4, 4, 3)",
       .is_random = true,
       .infer = InferDecodeCrop,
       .eval = EvalDecodeCrop},
      {.name = "image.sample_distorted_bounding_box",
       .params = {{"image_size", ParamKind::kTensor, "",
                   "Height, width and channels."},
                  {"bounding_boxes", ParamKind::kTensor, "",
                   "ymin, xmin, ymax, xmax from 0 to 1: (1, boxes, 4)."},
                  seed,
                  {"min_object_covered", ParamKind::kFloat, "0.1",
                   "The part of a box that must be inside."},
                  {"aspect_ratio_range", ParamKind::kFloats, "None",
                   "Width by height, from and to."},
                  {"area_range", ParamKind::kFloats, "None",
                   "The part of the area, from and to."},
                  {"max_attempts", ParamKind::kInt, "None",
                   "After so many, it is the whole image."},
                  {"use_image_if_no_bounding_boxes", ParamKind::kBool, "None",
                   "Whether no boxes mean the whole image."}},
       .doc = "A random box that holds part of an object.",
       .example = "",
       .is_random = true,
       .infer = nullptr,
       .eval = nullptr,
       .infer_parts = InferBoxes,
       .eval_parts = EvalBoxes,
       .is_internal = true},
  };
}

}  // namespace penstock::functions
