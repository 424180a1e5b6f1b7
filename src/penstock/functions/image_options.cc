#include "penstock/functions/image_options.h"

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {

absl::Status CheckContents(std::string_view function, const ArgSpec& arg) {
  if (arg.spec.dtype == DType::kString &&
      (!arg.spec.shape.has_rank() || arg.spec.shape.rank() == 0)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      Text(function), " needs the bytes of one file, a scalar string; got ",
      arg.spec.ToString()));
}

TensorSpec ImageSpec(DType dtype, std::optional<int64_t> height,
                     std::optional<int64_t> width,
                     std::optional<int64_t> channels) {
  return {dtype, PartialShape(PartialShape::Dims{height, width, channels})};
}

std::vector<Param> JpegParams() {
  return {
      {"channels", ParamKind::kInt, "0",
       "Those of the result: 1 (gray), 3 (RGB), or 0: the file's own."},
      {"ratio", ParamKind::kInt, "1",
       "1, 2, 4 or 8: height and width are divided by it, which is much "
       "faster."},
      {"fancy_upscaling", ParamKind::kBool, "True",
       "Smooths colours that were stored at half the size."},
      {"try_recover_truncated", ParamKind::kBool, "False",
       "Fills what a truncated file lacks, instead of an error."},
      {"acceptable_fraction", ParamKind::kFloat, "1.0",
       "The part of a truncated file's rows that is enough; the rest is "
       "black."},
      {"dct_method", ParamKind::kText, "\"\"",
       "\"INTEGER_FAST\", as if not given, or \"INTEGER_ACCURATE\"."},
  };
}

absl::StatusOr<JpegOptions> JpegAttrs(const Attrs& attrs) {
  JpegOptions options;
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t channels,
                            IntAttr(attrs, "channels", 0));
  if (channels != 0 && channels != 1 && channels != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("channels must be 0, 1 or 3 for JPEG; got ", channels));
  }
  options.channels = static_cast<int>(channels);
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t ratio, IntAttr(attrs, "ratio", 1));
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("ratio must be 1, 2, 4 or 8; got ", ratio));
  }
  options.ratio = static_cast<int>(ratio);
  PENSTOCK_ASSIGN_OR_RETURN(options.fancy_upscaling,
                            BoolAttr(attrs, "fancy_upscaling", true));
  PENSTOCK_ASSIGN_OR_RETURN(options.try_recover_truncated,
                            BoolAttr(attrs, "try_recover_truncated", false));
  PENSTOCK_ASSIGN_OR_RETURN(const double fraction,
                            FloatAttr(attrs, "acceptable_fraction", 1));
  options.acceptable_fraction = static_cast<float>(fraction);
  if (attrs.contains("dct_method")) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view method,
                              TextAttr(attrs, "dct_method"));
    if (method != "" && method != "INTEGER_FAST" &&
        method != "INTEGER_ACCURATE") {
      return absl::InvalidArgumentError(absl::StrCat(
          "dct_method must be \"\", \"INTEGER_FAST\" or \"INTEGER_ACCURATE\"; "
          "got \"",
          Text(method), "\""));
    }
    options.is_accurate = method == "INTEGER_ACCURATE";
  }
  return options;
}

ImageDims::ImageDims(absl::Span<const int64_t> shape) {
  const size_t rank = shape.size();
  for (size_t i = 0; i + 3 < rank; ++i) frames *= shape[i];
  height = shape[rank - 3];
  width = shape[rank - 2];
  channels = shape[rank - 1];
}

absl::Status CheckImages(std::string_view function, const ArgSpec& arg,
                         bool may_be_batch) {
  const PartialShape& shape = arg.spec.shape;
  const bool is_number =
      arg.spec.dtype != DType::kString && !IsComplex(arg.spec.dtype);
  if (is_number && shape.has_rank() &&
      (shape.rank() == 3 || (may_be_batch && shape.rank() == 4))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      Text(function), " needs an image of height x width x channels",
      may_be_batch ? ", or several along a first dimension" : "", "; got ",
      arg.spec.ToString()));
}

absl::StatusOr<PartialSize> InferSize(std::string_view function,
                                      const ArgSpec& arg) {
  PENSTOCK_RETURN_IF_ERROR(CheckInts("size", arg, 1));
  PartialSize size;
  const std::optional<Ints> known = ConstantInts(arg);
  const bool is_pair =
      known ? known->size() == 2 : KnownCount(arg).value_or(2) == 2;
  if (!is_pair) {
    return absl::InvalidArgumentError(
        absl::StrCat(Text(function), "'s size must be height and width; got ",
                     arg.spec.ToString()));
  }
  if (known) {
    const Arg constant = {arg.constant, /*is_uniform=*/true};
    PENSTOCK_ASSIGN_OR_RETURN(const ImageSize own, ReadSize(constant, 0));
    size.height = own.height;
    size.width = own.width;
  }
  return size;
}

absl::StatusOr<ImageSize> ReadSize(const Arg& arg, int64_t row) {
  const Ints ints = ReadInts(*arg.column, RowIndex(arg, row));
  constexpr int64_t kMost = int64_t{1} << 20;
  if (ints.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "size must be height and width; got ", ints.size(), " numbers"));
  }
  if (ints[0] < 1 || ints[1] < 1 || ints[0] > kMost || ints[1] > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("height and width must be from 1 to 2^20; got ", ints[0],
                     " and ", ints[1]));
  }
  return ImageSize{ints[0], ints[1]};
}

}  // namespace penstock::functions
