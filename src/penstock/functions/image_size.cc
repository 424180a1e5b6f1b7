#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/appender.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/image_jpeg.h"
#include "penstock/functions/image_options.h"
#include "penstock/functions/image_resize.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

struct ResizeAttrs {
  ResizeMethod method = ResizeMethod::kBilinear;
  bool preserve_aspect_ratio = false;
  bool antialias = false;
};

absl::StatusOr<ResizeAttrs> ReadAttrs(const Attrs& attrs) {
  ResizeAttrs own;
  if (attrs.contains("method")) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view method,
                              TextAttr(attrs, "method"));
    PENSTOCK_ASSIGN_OR_RETURN(own.method, ParseResizeMethod(method));
  }
  PENSTOCK_ASSIGN_OR_RETURN(own.preserve_aspect_ratio,
                            BoolAttr(attrs, "preserve_aspect_ratio", false));
  PENSTOCK_ASSIGN_OR_RETURN(own.antialias, BoolAttr(attrs, "antialias", false));
  return own;
}

// The largest size within `size` with the image's proportions.
ImageSize WithAspect(ImageSize size, int64_t height, int64_t width) {
  const float scale =
      std::min(static_cast<float>(size.height) / static_cast<float>(height),
               static_cast<float>(size.width) / static_cast<float>(width));
  auto scaled = [&](int64_t own) {
    const float exact = scale * static_cast<float>(own);
    return std::max<int64_t>(1, std::lrint(exact));
  };
  return {scaled(height), scaled(width)};
}

absl::StatusOr<TensorSpec> InferResize(absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(
      CheckImages("resize", args[0], /*may_be_batch=*/true));
  PENSTOCK_ASSIGN_OR_RETURN(PartialSize size, InferSize("resize", args[1]));
  PENSTOCK_ASSIGN_OR_RETURN(const ResizeAttrs own, ReadAttrs(attrs));
  PartialShape::Dims dims = args[0].spec.shape.dims();
  const size_t at = dims.size() - 3;
  if (own.preserve_aspect_ratio) {
    if (size.height && dims[at] && dims[at + 1] && *dims[at] > 0 &&
        *dims[at + 1] > 0) {
      const ImageSize exact =
          WithAspect({*size.height, *size.width}, *dims[at], *dims[at + 1]);
      size = {exact.height, exact.width};
    } else {
      size = {};
    }
  }
  dims[at] = size.height;
  dims[at + 1] = size.width;
  const bool is_nearest = own.method == ResizeMethod::kNearest;
  return TensorSpec{is_nearest ? args[0].spec.dtype : DType::kFloat32,
                    PartialShape(std::move(dims))};
}

absl::StatusOr<Column> EvalResize(absl::Span<const Arg> args,
                                  const Attrs& attrs, const TensorSpec& result,
                                  EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const ResizeAttrs own, ReadAttrs(attrs));
  const Column& images = *args[0].column;
  Resizer resizer(own.method, own.antialias);
  const bool has_one_shape = HasOneShape(args[0]) && args[1].is_uniform;
  return MakeRows(
      result.dtype, images.rank(), ResultRows(args, context), has_one_shape, {},
      context,
      [&](int64_t row, int64_t* dims) -> absl::Status {
        const absl::Span<const int64_t> shape =
            images.RowShape(RowIndex(args[0], row));
        const ImageDims from(shape);
        PENSTOCK_ASSIGN_OR_RETURN(ImageSize size, ReadSize(args[1], row));
        if (from.height < 1 || from.width < 1) {
          return absl::InvalidArgumentError(absl::StrCat(
              "resize needs an image with pixels; got ", ToString(shape)));
        }
        if (own.preserve_aspect_ratio) {
          size = WithAspect(size, from.height, from.width);
        }
        std::copy(shape.begin(), shape.end(), dims);
        dims[shape.size() - 3] = size.height;
        dims[shape.size() - 2] = size.width;
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        const int64_t from_row = RowIndex(args[0], row);
        const ImageDims from(images.RowShape(from_row));
        const ImageDims to(shape);
        const std::byte* data = images.RowData(from_row);
        const int64_t from_bytes =
            from.height * from.width * from.channels *
            static_cast<int64_t>(ItemSize(images.dtype()));
        const int64_t to_bytes = to.height * to.width * to.channels *
                                 static_cast<int64_t>(ItemSize(result.dtype));
        for (int64_t i = 0; i < to.frames; ++i) {
          const PixelView view = {
              data + i * from_bytes, images.dtype(),
              from.height,           from.width,
              from.channels,         from.width * from.channels};
          std::byte* frame = out + i * to_bytes;
          if (own.method == ResizeMethod::kNearest) {
            resizer.ResizeNearest(view, to.height, to.width, frame);
          } else {
            resizer.Resize(view, to.height, to.width,
                           reinterpret_cast<float*>(frame));
          }
        }
      });
}

absl::StatusOr<TensorSpec> InferDecodeResized(absl::Span<const ArgSpec> args,
                                              const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckContents("decode_resized", args[0]));
  PENSTOCK_ASSIGN_OR_RETURN(const PartialSize size,
                            InferSize("decode_resized", args[1]));
  PENSTOCK_ASSIGN_OR_RETURN(const JpegOptions options, JpegAttrs(attrs));
  PENSTOCK_ASSIGN_OR_RETURN(const ResizeAttrs own, ReadAttrs(attrs));
  if (own.method == ResizeMethod::kNearest) {
    return absl::InvalidArgumentError(
        "decode_resized averages pixels; got method nearest. Use decode_jpeg "
        "and resize.");
  }
  return ImageSpec(
      DType::kFloat32, size.height, size.width,
      options.channels == 0 ? std::optional<int64_t>() : options.channels);
}

// The largest ratio at which both sides still are at least those wanted.
int RatioFor(int64_t height, int64_t width, ImageSize size) {
  for (int ratio : {8, 4, 2}) {
    if (height >= size.height * ratio && width >= size.width * ratio) {
      return ratio;
    }
  }
  return 1;
}

absl::StatusOr<Column> EvalDecodeResized(absl::Span<const Arg> args,
                                         const Attrs& attrs, const TensorSpec&,
                                         EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const ResizeAttrs own, ReadAttrs(attrs));
  PENSTOCK_ASSIGN_OR_RETURN(JpegOptions options, JpegAttrs(attrs));
  options.ratio = 8;
  const int64_t rows = ResultRows(args, context);
  JpegReader reader;
  Resizer resizer(own.method, own.antialias);
  std::vector<uint8_t> pixels;
  RowAppender appender(DType::kFloat32, 3, rows, context);
  auto decode = [&](int64_t row) -> absl::Status {
    const std::string_view contents =
        args[0].column->Row<StringRef>(RowIndex(args[0], row))->view();
    PENSTOCK_ASSIGN_OR_RETURN(const ImageSize size, ReadSize(args[1], row));
    PENSTOCK_RETURN_IF_ERROR(reader.Open(contents, options));
    PENSTOCK_RETURN_IF_ERROR(reader.SetRatio(
        RatioFor(reader.file_height(), reader.file_width(), size)));
    const int64_t shape[] = {size.height, size.width, reader.channels()};
    PENSTOCK_RETURN_IF_ERROR(CheckElementSize(shape, DType::kFloat32));
    const int64_t row_items = reader.width() * reader.channels();
    pixels.resize(reader.height() * row_items);
    PENSTOCK_RETURN_IF_ERROR(reader.Read(pixels.data()));
    resizer.Resize({pixels.data(), DType::kUint8, reader.height(),
                    reader.width(), reader.channels(), row_items},
                   size.height, size.width,
                   reinterpret_cast<float*>(appender.Begin(shape)));
    return absl::OkStatus();
  };
  for (int64_t row = 0; row < rows; ++row) {
    absl::Status status = decode(row);
    if (status.ok()) {
      appender.Commit();
    } else {
      appender.Fail(context, std::move(status));
    }
  }
  return std::move(appender).Finish();
}

}  // namespace

std::vector<Function> ImageSizeFunctions() {
  const Param size = {"size", ParamKind::kTensor, "",
                      "Height and width of the result."};
  const Param method = {
      "method", ParamKind::kText, "\"bilinear\"",
      "\"bilinear\", \"nearest\", \"bicubic\", \"area\", \"lanczos3\", "
      "\"lanczos5\", \"gaussian\" or \"mitchellcubic\"."};
  const Param antialias = {
      "antialias", ParamKind::kBool, "False",
      "Averages over all pixels that a smaller image leaves out."};
  return {
      {.name = "image.resize",
       .params = {{"images", ParamKind::kTensor, "",
                   "height x width x channels, or several of them along a "
                   "first dimension."},
                  size,
                  method,
                  {"preserve_aspect_ratio", ParamKind::kBool, "False",
                   "Keeps the proportions: the largest size within `size`."},
                  antialias},
       .doc = "Images of another size.\nThe result is float32 in the images' "
              "own range: of uint8, 0 to 255. By method \"nearest\" it is of "
              "their own dtype.",
       .example = ">>> ps.image.resize(np.zeros((9, 9, 3)), (2, 4)).shape\n"
                  "(2, 4, 3)",
       .infer = InferResize,
       .eval = EvalResize},
      {.name = "image.decode_resized",
       .params = {{"contents", ParamKind::kTensor, "",
                   "The bytes of a JPEG file."},
                  size,
                  {"channels", ParamKind::kInt, "3",
                   "Those of the result: 1 (gray), 3 (RGB), or 0: the file's "
                   "own."},
                  method,
                  antialias},
       .doc = "A JPEG file's pixels at another size, decoded at 1/2, 1/4 or "
              "1/8 if possible.\nThe result is float32 from 0 to 255. It is "
              "decoded at the smallest of these sizes that is not below the "
              "one asked for, and resized the rest of the way.",
       .example =
           ">>> contents = ps.image.encode_jpeg(np.zeros((9, 9, 3), np.uint8))"
           "\n>>> ps.image.decode_resized(contents, (2, 4)).shape\n(2, 4, 3)",
       .infer = InferDecodeResized,
       .eval = EvalDecodeResized},
  };
}

}  // namespace penstock::functions
