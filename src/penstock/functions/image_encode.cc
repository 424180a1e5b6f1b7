#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/image_formats.h"
#include "penstock/functions/image_jpeg.h"
#include "penstock/functions/image_options.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

// Files as rows. encode(row) -> absl::StatusOr<std::string>.
template <typename Encode>
absl::StatusOr<Column> EncodeRows(absl::Span<const Arg> args,
                                  EvalContext& context, Encode&& encode) {
  const int64_t rows = ResultRows(args, context);
  std::vector<std::string> files(rows);
  for (int64_t row = 0; row < rows; ++row) {
    absl::StatusOr<std::string> file = encode(RowIndex(args[0], row));
    if (file.ok()) {
      files[row] = *std::move(file);
    } else {
      ReportRow(context, row, std::move(file).status());
    }
  }
  const std::vector<std::string_view> views(files.begin(), files.end());
  return MakeStringColumn(views);
}

absl::StatusOr<JpegWriteOptions> WriteAttrs(const Attrs& attrs) {
  JpegWriteOptions options;
  auto read_text = [&](const char* name, std::string& to) -> absl::Status {
    if (!attrs.contains(name)) return absl::OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view text,
                              TextAttr(attrs, name));
    to = std::string(text);
    return absl::OkStatus();
  };
  auto read_int = [&](const char* name, int low, int high,
                      int& to) -> absl::Status {
    PENSTOCK_ASSIGN_OR_RETURN(const int64_t value, IntAttr(attrs, name, to));
    if (value < low || value > high) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, " must be from ", low, " to ", high, "; got ", value));
    }
    to = static_cast<int>(value);
    return absl::OkStatus();
  };
  PENSTOCK_RETURN_IF_ERROR(read_text("format", options.format));
  PENSTOCK_RETURN_IF_ERROR(read_text("density_unit", options.density_unit));
  PENSTOCK_RETURN_IF_ERROR(read_text("xmp_metadata", options.xmp_metadata));
  PENSTOCK_RETURN_IF_ERROR(read_int("quality", 0, 100, options.quality));
  PENSTOCK_RETURN_IF_ERROR(read_int("x_density", 0, 65535, options.x_density));
  PENSTOCK_RETURN_IF_ERROR(read_int("y_density", 0, 65535, options.y_density));
  PENSTOCK_ASSIGN_OR_RETURN(options.progressive,
                            BoolAttr(attrs, "progressive", false));
  PENSTOCK_ASSIGN_OR_RETURN(options.optimize_size,
                            BoolAttr(attrs, "optimize_size", false));
  PENSTOCK_ASSIGN_OR_RETURN(options.chroma_downsampling,
                            BoolAttr(attrs, "chroma_downsampling", true));
  const std::string& format = options.format;
  const std::string& unit = options.density_unit;
  if ((format != "" && format != "grayscale" && format != "rgb") ||
      (unit != "in" && unit != "cm")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "format must be \"\", \"grayscale\" or \"rgb\" and density_unit "
        "\"in\" or \"cm\"; got \"",
        format, "\" and \"", unit, "\""));
  }
  return options;
}

absl::Status CheckChannels(std::string_view function, bool is_allowed,
                           int64_t channels) {
  if (is_allowed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Text(function), " cannot write an image of ", channels,
                   " channels in this format"));
}

bool JpegTakes(const JpegWriteOptions& options, int64_t channels) {
  return (channels == 1 && options.format != "rgb") ||
         (channels == 3 && options.format != "grayscale");
}

absl::StatusOr<TensorSpec> InferEncodeJpeg(absl::Span<const ArgSpec> args,
                                           const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckImages("encode_jpeg", args[0], false));
  PENSTOCK_ASSIGN_OR_RETURN(const JpegWriteOptions options, WriteAttrs(attrs));
  if (args[0].spec.dtype != DType::kUint8) {
    return absl::InvalidArgumentError(
        absl::StrCat("encode_jpeg needs uint8; got ", args[0].spec.ToString()));
  }
  if (const std::optional<int64_t> channels = args[0].spec.shape.dims()[2]) {
    PENSTOCK_RETURN_IF_ERROR(
        CheckChannels("encode_jpeg", JpegTakes(options, *channels), *channels));
  }
  return TensorSpec{DType::kString, {}};
}

absl::StatusOr<Column> EvalEncodeJpeg(absl::Span<const Arg> args,
                                      const Attrs& attrs, const TensorSpec&,
                                      EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const JpegWriteOptions options, WriteAttrs(attrs));
  return EncodeRows(
      args, context, [&](int64_t row) -> absl::StatusOr<std::string> {
        const ImageDims dims(args[0].column->RowShape(row));
        PENSTOCK_RETURN_IF_ERROR(CheckChannels(
            "encode_jpeg", JpegTakes(options, dims.channels), dims.channels));
        return WriteJpeg(args[0].column->Row<uint8_t>(row), dims.height,
                         dims.width, static_cast<int>(dims.channels), options);
      });
}

absl::StatusOr<int64_t> CompressionAttr(const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t compression,
                            IntAttr(attrs, "compression", -1));
  if (compression >= -1 && compression <= 9) return compression;
  return absl::InvalidArgumentError(
      absl::StrCat("compression must be from -1 to 9; got ", compression));
}

absl::StatusOr<TensorSpec> InferEncodePng(absl::Span<const ArgSpec> args,
                                          const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckImages("encode_png", args[0], false));
  PENSTOCK_RETURN_IF_ERROR(CompressionAttr(attrs).status());
  if (args[0].spec.dtype != DType::kUint8 &&
      args[0].spec.dtype != DType::kUint16) {
    return absl::InvalidArgumentError(absl::StrCat(
        "encode_png needs uint8 or uint16; got ", args[0].spec.ToString()));
  }
  if (const std::optional<int64_t> channels = args[0].spec.shape.dims()[2]) {
    PENSTOCK_RETURN_IF_ERROR(CheckChannels(
        "encode_png", *channels >= 1 && *channels <= 4, *channels));
  }
  return TensorSpec{DType::kString, {}};
}

absl::StatusOr<Column> EvalEncodePng(absl::Span<const Arg> args,
                                     const Attrs& attrs, const TensorSpec&,
                                     EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t compression, CompressionAttr(attrs));
  const int bits = args[0].column->dtype() == DType::kUint16 ? 16 : 8;
  return EncodeRows(
      args, context, [&](int64_t row) -> absl::StatusOr<std::string> {
        const ImageDims dims(args[0].column->RowShape(row));
        PENSTOCK_RETURN_IF_ERROR(CheckChannels(
            "encode_png", dims.channels >= 1 && dims.channels <= 4,
            dims.channels));
        return WritePng(args[0].column->RowData(row), dims.height, dims.width,
                        static_cast<int>(dims.channels), bits,
                        static_cast<int>(compression));
      });
}

}  // namespace

std::vector<Function> ImageEncodeFunctions() {
  return {
      {.name = "image.encode_jpeg",
       .params = {{"image", ParamKind::kTensor, "",
                   "height x width x 1 or 3, of uint8."},
                  {"format", ParamKind::kText, "\"\"",
                   "\"grayscale\" or \"rgb\"; if not given, by the number of "
                   "channels."},
                  {"quality", ParamKind::kInt, "95", "From 0 to 100."},
                  {"progressive", ParamKind::kBool, "False",
                   "Coarse first, then finer."},
                  {"optimize_size", ParamKind::kBool, "False",
                   "Fewer bytes for more time; the pixels stay the same."},
                  {"chroma_downsampling", ParamKind::kBool, "True",
                   "Stores colours at half the size."},
                  {"density_unit", ParamKind::kText, "\"in\"",
                   "\"in\" or \"cm\"."},
                  {"x_density", ParamKind::kInt, "300", "Pixels per unit."},
                  {"y_density", ParamKind::kInt, "300", "Pixels per unit."},
                  {"xmp_metadata", ParamKind::kText, "\"\"",
                   "Put into the file as it is."}},
       .doc = "An image as the bytes of a JPEG file.",
       .example = ">>> ps.image.encode_jpeg(np.zeros((1, 1, 3), np.uint8))[:3]"
                  "\nb'\\xff\\xd8\\xff'",
       .infer = InferEncodeJpeg,
       .eval = EvalEncodeJpeg},
      {.name = "image.encode_png",
       .params = {{"image", ParamKind::kTensor, "",
                   "height x width x 1 to 4, of uint8 or uint16."},
                  {"compression", ParamKind::kInt, "-1",
                   "From 0 (none) to 9; -1 means zlib's own choice."}},
       .doc = "An image as the bytes of a PNG file.",
       .example = ">>> ps.image.encode_png(np.zeros((1, 1, 3), np.uint8))[:4]"
                  "\nb'\\x89PNG'",
       .infer = InferEncodePng,
       .eval = EvalEncodePng},
  };
}

}  // namespace penstock::functions
