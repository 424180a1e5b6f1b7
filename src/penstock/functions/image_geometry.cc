#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/image_options.h"
#include "penstock/functions/image_random.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

// ---- Crops and pads: a window of the image, put into a canvas of zeros.

struct Placement {
  int64_t height = 0;  // of the canvas
  int64_t width = 0;
  CropWindow from;  // of the image
  int64_t y = 0;    // in the canvas
  int64_t x = 0;
};

// What a function does to an image of this size, given its four integers.
using Place = absl::StatusOr<Placement> (*)(const ImageDims& dims,
                                            const Ints& own);

absl::StatusOr<Placement> Crop(const ImageDims& dims, const Ints& own) {
  const CropWindow crop = {own[0], own[1], own[2], own[3]};
  PENSTOCK_RETURN_IF_ERROR(CheckCropWindow(crop, dims.height, dims.width));
  return Placement{crop.height, crop.width, crop, 0, 0};
}

absl::StatusOr<Placement> Pad(const ImageDims& dims, const Ints& own) {
  if (own[0] < 0 || own[1] < 0 || own[2] < dims.height || own[3] < dims.width ||
      own[0] > own[2] - dims.height || own[1] > own[3] - dims.width) {
    return absl::InvalidArgumentError(
        absl::StrCat("the box must hold the image of ", dims.height, " x ",
                     dims.width, " at the offset; got offset ", own[0], ", ",
                     own[1], " and target ", own[2], " x ", own[3]));
  }
  return Placement{
      own[2], own[3], {0, 0, dims.height, dims.width}, own[0], own[1]};
}

absl::StatusOr<Placement> CropOrPad(const ImageDims& dims, const Ints& own) {
  if (own[0] < 1 || own[1] < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("target_height and target_width must be positive; got ",
                     own[0], " and ", own[1]));
  }
  Placement made;
  made.height = own[0];
  made.width = own[1];
  made.from = {std::max<int64_t>(0, (dims.height - own[0]) / 2),
               std::max<int64_t>(0, (dims.width - own[1]) / 2),
               std::min(dims.height, own[0]), std::min(dims.width, own[1])};
  made.y = std::max<int64_t>(0, (own[0] - dims.height) / 2);
  made.x = std::max<int64_t>(0, (own[1] - dims.width) / 2);
  return made;
}

constexpr const char* kBoxNames[] = {"offset_height", "offset_width",
                                     "target_height", "target_width"};

// The last `count` of kBoxNames, each an int.
absl::StatusOr<Ints> BoxAttrs(const Attrs& attrs, int count) {
  Ints own;
  for (int i = 4 - count; i < 4; ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(const int64_t value,
                              IntAttr(attrs, kBoxNames[i], 0));
    own.push_back(value);
  }
  return own;
}

template <int kCount>
absl::StatusOr<TensorSpec> InferBox(absl::Span<const ArgSpec> args,
                                    const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckImages("the function", args[0], true));
  PENSTOCK_ASSIGN_OR_RETURN(const Ints own, BoxAttrs(attrs, kCount));
  for (int64_t value : own) {
    if (value < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "offsets and targets must not be negative; got ", value));
    }
  }
  PartialShape::Dims dims = args[0].spec.shape.dims();
  dims[dims.size() - 3] = own[own.size() - 2];
  dims[dims.size() - 2] = own[own.size() - 1];
  return TensorSpec{args[0].spec.dtype, PartialShape(std::move(dims))};
}

void Copy(const std::byte* from, const ImageDims& dims, size_t item_bytes,
          const Placement& place, std::byte* to) {
  const int64_t pixel = dims.channels * static_cast<int64_t>(item_bytes);
  const int64_t from_row = dims.width * pixel;
  const int64_t to_row = place.width * pixel;
  const bool is_whole =
      place.from.height == place.height && place.from.width == place.width;
  for (int64_t frame = 0; frame < dims.frames; ++frame) {
    const std::byte* in = from + frame * dims.height * from_row +
                          place.from.y * from_row + place.from.x * pixel;
    std::byte* out = to + frame * place.height * to_row;
    if (!is_whole) std::memset(out, 0, place.height * to_row);
    out += place.y * to_row + place.x * pixel;
    for (int64_t y = 0; y < place.from.height; ++y) {
      std::memcpy(out + y * to_row, in + y * from_row,
                  place.from.width * pixel);
    }
  }
}

// place_of(row, dims) -> absl::StatusOr<Placement>.
template <typename PlaceOf>
absl::StatusOr<Column> PlaceRows(const Arg& images, int64_t rows,
                                 bool has_one_shape, EvalContext& context,
                                 PlaceOf&& place_of) {
  const Column& column = *images.column;
  const size_t item_bytes = ItemSize(column.dtype());
  std::vector<Placement> places(has_one_shape ? 1 : rows);
  return MakeRows(
      column.dtype(), column.rank(), rows, has_one_shape, {}, context,
      [&](int64_t row, int64_t* dims) -> absl::Status {
        const absl::Span<const int64_t> shape =
            column.RowShape(RowIndex(images, row));
        PENSTOCK_ASSIGN_OR_RETURN(places[row], place_of(row, ImageDims(shape)));
        std::copy(shape.begin(), shape.end(), dims);
        dims[shape.size() - 3] = places[row].height;
        dims[shape.size() - 2] = places[row].width;
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t>, std::byte* out) {
        const int64_t from = RowIndex(images, row);
        Copy(column.RowData(from), ImageDims(column.RowShape(from)), item_bytes,
             places[has_one_shape ? 0 : row], out);
      });
}

template <Place kPlace, int kCount>
absl::StatusOr<Column> EvalBox(absl::Span<const Arg> args, const Attrs& attrs,
                               const TensorSpec&, EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const Ints own, BoxAttrs(attrs, kCount));
  return PlaceRows(
      args[0], ResultRows(args, context), HasOneShape(args[0]), context,
      [&](int64_t, const ImageDims& dims) { return kPlace(dims, own); });
}

absl::StatusOr<double> FractionAttr(const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const double fraction,
                            FloatAttr(attrs, "central_fraction", 1));
  if (fraction > 0 && fraction <= 1) return fraction;
  return absl::InvalidArgumentError(absl::StrCat(
      "central_fraction must be above 0 and at most 1; got ", fraction));
}

// As TensorFlow: what is cut off at the start is rounded down.
Placement Centre(const ImageDims& dims, double fraction) {
  auto start = [&](int64_t size) {
    return static_cast<int64_t>(
        (static_cast<double>(size) - static_cast<double>(size) * fraction) / 2);
  };
  const int64_t y = start(dims.height);
  const int64_t x = start(dims.width);
  const int64_t height = dims.height - 2 * y;
  const int64_t width = dims.width - 2 * x;
  return {height, width, {y, x, height, width}, 0, 0};
}

absl::StatusOr<TensorSpec> InferCentre(absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckImages("central_crop", args[0], true));
  PENSTOCK_ASSIGN_OR_RETURN(const double fraction, FractionAttr(attrs));
  PartialShape::Dims dims = args[0].spec.shape.dims();
  const size_t at = dims.size() - 3;
  const int64_t own[] = {dims[at].value_or(0), dims[at + 1].value_or(0), 1};
  const Placement place = Centre(ImageDims(own), fraction);
  if (dims[at]) dims[at] = place.height;
  if (dims[at + 1]) dims[at + 1] = place.width;
  return TensorSpec{args[0].spec.dtype, PartialShape(std::move(dims))};
}

absl::StatusOr<Column> EvalCentre(absl::Span<const Arg> args,
                                  const Attrs& attrs, const TensorSpec&,
                                  EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const double fraction, FractionAttr(attrs));
  return PlaceRows(
      args[0], ResultRows(args, context), HasOneShape(args[0]), context,
      [&](int64_t, const ImageDims& dims) -> absl::StatusOr<Placement> {
        return Centre(dims, fraction);
      });
}

// ---- Random crops

absl::StatusOr<TensorSpec> InferRandomCrop(absl::Span<const ArgSpec> args,
                                           const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckImages("random_crop", args[0], true));
  PENSTOCK_RETURN_IF_ERROR(IntAttr(attrs, "seed", 0).status());
  PENSTOCK_ASSIGN_OR_RETURN(const PartialSize size,
                            InferSize("random_crop", args[1]));
  PartialShape::Dims dims = args[0].spec.shape.dims();
  dims[dims.size() - 3] = size.height;
  dims[dims.size() - 2] = size.width;
  return TensorSpec{args[0].spec.dtype, PartialShape(std::move(dims))};
}

absl::StatusOr<Column> EvalRandomCrop(absl::Span<const Arg> args,
                                      const Attrs& attrs, const TensorSpec&,
                                      EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t seed, IntAttr(attrs, "seed", 0));
  return PlaceRows(
      args[0], context.rows, /*has_one_shape=*/false, context,
      [&](int64_t row, const ImageDims& dims) -> absl::StatusOr<Placement> {
        PENSTOCK_ASSIGN_OR_RETURN(const ImageSize size, ReadSize(args[1], row));
        if (size.height > dims.height || size.width > dims.width) {
          return absl::InvalidArgumentError(absl::StrCat(
              "random_crop's size must be within the image of ", dims.height,
              " x ", dims.width, "; got ", size.height, " x ", size.width,
              ". Use pad_to_bounding_box or resize first."));
        }
        Draws draws(context, seed, row);
        const int64_t y = draws.Below(dims.height - size.height + 1);
        const int64_t x = draws.Below(dims.width - size.width + 1);
        const CropWindow crop = {y, x, size.height, size.width};
        return Placement{size.height, size.width, crop, 0, 0};
      });
}

// ---- Flips and turns

// An image's pixels in another order. Only kTranspose and quarter turns swap
// height and width.
enum class Turn : uint8_t {
  kNone,
  kLeftRight,
  kUpDown,
  kHalf,
  kQuarter,  // counter-clockwise
  kThreeQuarters,
  kTranspose,
};

bool Swaps(Turn turn) {
  return turn == Turn::kQuarter || turn == Turn::kThreeQuarters ||
         turn == Turn::kTranspose;
}

// Pixels of a size that the compiler knows are moved by registers.
template <size_t kPixelBytes>
void TurnPixels(const std::byte* from, int64_t begin, int64_t y_step,
                int64_t x_step, int64_t height, int64_t width,
                size_t pixel_bytes, std::byte* to) {
  const size_t size = kPixelBytes == 0 ? pixel_bytes : kPixelBytes;
  const auto stride = static_cast<int64_t>(size);
  for (int64_t y = 0; y < height; ++y) {
    const std::byte* in = from + (begin + y * y_step) * stride;
    if (x_step == 1) {
      std::memcpy(to, in, width * size);
      to += width * size;
      continue;
    }
    for (int64_t x = 0; x < width; ++x, to += size, in += x_step * stride) {
      std::memcpy(to, in, size);
    }
  }
}

// Of one image, or of one of several.
void TurnImage(const std::byte* from, const ImageDims& dims, size_t item_bytes,
               Turn turn, std::byte* to) {
  const int64_t h = dims.height;
  const int64_t w = dims.width;
  const size_t pixel = item_bytes * dims.channels;
  int64_t begin = 0;
  int64_t y_step = w;
  int64_t x_step = 1;
  switch (turn) {
    case Turn::kNone:
      break;
    case Turn::kLeftRight:
      begin = w - 1, x_step = -1;
      break;
    case Turn::kUpDown:
      begin = (h - 1) * w, y_step = -w;
      break;
    case Turn::kHalf:
      begin = h * w - 1, y_step = -w, x_step = -1;
      break;
    case Turn::kQuarter:
      begin = w - 1, y_step = -1, x_step = w;
      break;
    case Turn::kThreeQuarters:
      begin = (h - 1) * w, y_step = 1, x_step = -w;
      break;
    case Turn::kTranspose:
      y_step = 1, x_step = w;
      break;
  }
  const auto loop = pixel == 3    ? TurnPixels<3>
                    : pixel == 1  ? TurnPixels<1>
                    : pixel == 4  ? TurnPixels<4>
                    : pixel == 12 ? TurnPixels<12>
                                  : TurnPixels<0>;
  loop(from, begin, y_step, x_step, Swaps(turn) ? w : h, Swaps(turn) ? h : w,
       pixel, to);
}

template <size_t kPixelBytes>
void ReversePixels(std::byte* row, int64_t width, size_t pixel_bytes) {
  const size_t size = kPixelBytes == 0 ? pixel_bytes : kPixelBytes;
  std::byte* left = row;
  std::byte* right = row + (width - 1) * static_cast<int64_t>(size);
  for (; left < right; left += size, right -= size) {
    std::swap_ranges(left, left + size, right);
  }
}

// Of one image, or of one of several. REQUIRES: kLeftRight or kUpDown.
void FlipInPlace(std::byte* data, const ImageDims& dims, size_t item_bytes,
                 Turn turn) {
  const size_t pixel = item_bytes * dims.channels;
  const size_t row_bytes = dims.width * pixel;
  if (turn == Turn::kUpDown) {
    for (int64_t y = 0; y < dims.height / 2; ++y) {
      std::byte* top = data + y * row_bytes;
      std::swap_ranges(top, top + row_bytes,
                       data + (dims.height - 1 - y) * row_bytes);
    }
    return;
  }
  for (int64_t y = 0; y < dims.height; ++y) {
    std::byte* row = data + y * row_bytes;
    if (pixel == 12) {
      ReversePixels<12>(row, dims.width, pixel);
    } else if (pixel == 3) {
      ReversePixels<3>(row, dims.width, pixel);
    } else {
      ReversePixels<0>(row, dims.width, pixel);
    }
  }
}

TensorSpec TurnSpec(TensorSpec spec, Turn turn) {
  if (Swaps(turn)) {
    PartialShape::Dims dims = spec.shape.dims();
    std::swap(dims[dims.size() - 3], dims[dims.size() - 2]);
    spec.shape = PartialShape(std::move(dims));
  }
  return spec;
}

// turn_of(row, which of its images) -> Turn.
template <typename TurnOf>
absl::StatusOr<Column> TurnRows(const Arg& images, int64_t rows, bool swaps,
                                EvalContext& context, TurnOf&& turn_of) {
  const Column& column = *images.column;
  const size_t item_bytes = ItemSize(column.dtype());
  return MakeRows(
      column.dtype(), column.rank(), rows, HasOneShape(images), {}, context,
      [&](int64_t row, int64_t* dims) {
        const absl::Span<const int64_t> shape =
            column.RowShape(RowIndex(images, row));
        std::copy(shape.begin(), shape.end(), dims);
        if (swaps) std::swap(dims[shape.size() - 3], dims[shape.size() - 2]);
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t>, std::byte* out) {
        const int64_t from = RowIndex(images, row);
        const ImageDims dims(column.RowShape(from));
        const std::byte* data = column.RowData(from);
        const size_t bytes = dims.frame_items() * item_bytes;
        for (int64_t i = 0; i < dims.frames; ++i) {
          TurnImage(data + i * bytes, dims, item_bytes, turn_of(row, i),
                    out + i * bytes);
        }
      });
}

template <Turn kTurn>
absl::StatusOr<TensorSpec> InferTurn(absl::Span<const ArgSpec> args,
                                     const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(CheckImages("a flip", args[0], true));
  return TurnSpec(args[0].spec, kTurn);
}

template <Turn kTurn>
absl::StatusOr<Column> EvalTurn(absl::Span<const Arg> args, const Attrs&,
                                const TensorSpec&, EvalContext& context) {
  return TurnRows(args[0], ResultRows(args, context), Swaps(kTurn), context,
                  [](int64_t, int64_t) { return kTurn; });
}

absl::StatusOr<Turn> QuarterAttr(const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t k, IntAttr(attrs, "k", 1));
  constexpr Turn kTurns[] = {Turn::kNone, Turn::kQuarter, Turn::kHalf,
                             Turn::kThreeQuarters};
  return kTurns[((k % 4) + 4) % 4];
}

absl::StatusOr<TensorSpec> InferRot90(absl::Span<const ArgSpec> args,
                                      const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckImages("rot90", args[0], true));
  PENSTOCK_ASSIGN_OR_RETURN(const Turn turn, QuarterAttr(attrs));
  return TurnSpec(args[0].spec, turn);
}

absl::StatusOr<Column> EvalRot90(absl::Span<const Arg> args, const Attrs& attrs,
                                 const TensorSpec&, EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const Turn turn, QuarterAttr(attrs));
  return TurnRows(args[0], ResultRows(args, context), Swaps(turn), context,
                  [&](int64_t, int64_t) { return turn; });
}

template <Turn kTurn>
absl::StatusOr<TensorSpec> InferRandomFlip(absl::Span<const ArgSpec> args,
                                           const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(IntAttr(attrs, "seed", 0).status());
  return InferTurn<kTurn>(args, attrs);
}

template <Turn kTurn>
absl::StatusOr<Column> EvalRandomFlip(absl::Span<const Arg> args,
                                      const Attrs& attrs, const TensorSpec&,
                                      EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t seed, IntAttr(attrs, "seed", 0));
  auto turn_of = [&](int64_t row, int64_t frame) {
    Draws draws(context, seed, row);
    draws.Skip(frame);
    return draws.Fraction() < 0.5 ? kTurn : Turn::kNone;
  };
  if (MayOverwrite(args[0], context.rows)) {
    const Column& images = *args[0].column;
    const ImageDims dims(images.shape());
    const size_t item_bytes = ItemSize(images.dtype());
    for (int64_t row = 0; row < context.rows; ++row) {
      auto* data = const_cast<std::byte*>(images.RowData(row));
      for (int64_t i = 0; i < dims.frames; ++i) {
        if (turn_of(row, i) == Turn::kNone) continue;
        FlipInPlace(data + i * dims.frame_items() * item_bytes, dims,
                    item_bytes, kTurn);
      }
    }
    return images;
  }
  return TurnRows(args[0], context.rows, false, context, turn_of);
}

}  // namespace

std::vector<Function> ImageGeometryFunctions() {
  const Param& image = kImageParam;
  const Param& seed = kSeedParam;
  auto box = [](int i, std::string_view doc) -> Param {
    return {kBoxNames[i], ParamKind::kInt, "", doc};
  };
  return {
      {.name = "image.crop_to_bounding_box",
       .params = {image, box(0, "The first row."), box(1, "The first column."),
                  box(2, "Rows of the result."),
                  box(3, "Columns of the result.")},
       .doc = "A part of an image.",
       .example =
           ">>> image = np.arange(6).reshape(2, 3, 1)\n"
           ">>> ps.image.crop_to_bounding_box(image, 1, 1, 1, 2)[:, :, 0]\n"
           "array([[4, 5]])",
       .infer = InferBox<4>,
       .eval = EvalBox<Crop, 4>},
      {.name = "image.pad_to_bounding_box",
       .params = {image, box(0, "Rows of zeros above."),
                  box(1, "Columns of zeros on the left."),
                  box(2, "Rows of the result."),
                  box(3, "Columns of the result.")},
       .doc = "An image with zeros around it.",
       .example = ">>> image = np.ones((1, 1, 1), np.int64)\n"
                  ">>> ps.image.pad_to_bounding_box(image, 0, 1, 1, 3)[:, :, 0]"
                  "\narray([[0, 1, 0]])",
       .infer = InferBox<4>,
       .eval = EvalBox<Pad, 4>},
      {.name = "image.resize_with_crop_or_pad",
       .params = {image, box(2, "Rows of the result."),
                  box(3, "Columns of the result.")},
       .doc = "The middle of an image, with zeros around it where it is too "
              "small.",
       .example = ">>> image = np.arange(6).reshape(2, 3, 1)\n"
                  ">>> ps.image.resize_with_crop_or_pad(image, 2, 1)[:, :, 0]\n"
                  "array([[1],\n       [4]])",
       .infer = InferBox<2>,
       .eval = EvalBox<CropOrPad, 2>},
      {.name = "image.central_crop",
       .params = {image,
                  {"central_fraction", ParamKind::kFloat, "",
                   "The part of height and width to keep; as many pixels "
                   "go on either side."}},
       .doc = "The middle of an image.",
       .example = ">>> ps.image.central_crop(np.zeros((8, 6, 3)), 0.5).shape\n"
                  "(4, 4, 3)",
       .infer = InferCentre,
       .eval = EvalCentre},
      {.name = "image.random_crop",
       .params = {image,
                  {"size", ParamKind::kTensor, "",
                   "Height and width of the result."},
                  seed},
       .doc = "A part of an image (of several, the same), any place as likely.",
       .example = ">>> ps.image.random_crop(np.zeros((8, 6, 3)), (4, 4)).shape"
                  "\n(4, 4, 3)",
       .is_random = true,
       .infer = InferRandomCrop,
       .eval = EvalRandomCrop},
      {.name = "image.flip_left_right",
       .params = {image},
       .doc = "An image with its columns in reverse order.",
       .example =
           ">>> ps.image.flip_left_right(np.array([[[1], [2]]]))[:, :, 0]\n"
           "array([[2, 1]])",
       .infer = InferTurn<Turn::kLeftRight>,
       .eval = EvalTurn<Turn::kLeftRight>},
      {.name = "image.flip_up_down",
       .params = {image},
       .doc = "An image with its rows in reverse order.",
       .example = ">>> ps.image.flip_up_down(np.array([[[1]], [[2]]]))[:, :, 0]"
                  "\narray([[2],\n       [1]])",
       .infer = InferTurn<Turn::kUpDown>,
       .eval = EvalTurn<Turn::kUpDown>},
      {.name = "image.transpose",
       .params = {image},
       .doc = "An image with rows for columns.",
       .example = ">>> ps.image.transpose(np.array([[[1], [2]]]))[:, :, 0]\n"
                  "array([[1],\n       [2]])",
       .infer = InferTurn<Turn::kTranspose>,
       .eval = EvalTurn<Turn::kTranspose>},
      {.name = "image.rot90",
       .params = {image, {"k", ParamKind::kInt, "1", "How many quarters."}},
       .doc = "An image turned counter-clockwise by quarters.",
       .example = ">>> ps.image.rot90(np.array([[[1], [2]]]))[:, :, 0]\n"
                  "array([[2],\n       [1]])",
       .infer = InferRot90,
       .eval = EvalRot90},
      {.name = "image.random_flip_left_right",
       .params = {image, seed},
       .doc = "flip_left_right of each image with a probability of 1/2.",
       .example =
           ">>> ps.image.random_flip_left_right(np.zeros((2, 3, 1))).shape\n"
           "(2, 3, 1)",
       .is_random = true,
       .infer = InferRandomFlip<Turn::kLeftRight>,
       .eval = EvalRandomFlip<Turn::kLeftRight>},
      {.name = "image.random_flip_up_down",
       .params = {image, seed},
       .doc = "flip_up_down of each image with a probability of 1/2.",
       .example =
           ">>> ps.image.random_flip_up_down(np.zeros((2, 3, 1))).shape\n"
           "(2, 3, 1)",
       .is_random = true,
       .infer = InferRandomFlip<Turn::kUpDown>,
       .eval = EvalRandomFlip<Turn::kUpDown>},
  };
}

}  // namespace penstock::functions
