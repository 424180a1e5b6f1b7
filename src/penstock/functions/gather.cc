#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/cast.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/number.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

absl::StatusOr<TensorSpec> InferTake(absl::Span<const ArgSpec> args,
                                     const Attrs& attrs) {
  TensorSpec result = args[0].spec;
  const PartialShape& x = args[0].spec.shape;
  const PartialShape& indices = args[1].spec.shape;
  if (!IsInteger(args[1].spec.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "take's indices must be integers; got ", args[1].spec.ToString()));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(attrs, "axis", 0));
  if (!x.has_rank() || !indices.has_rank()) {
    result.shape = PartialShape::UnknownRank();
    return result;
  }
  PENSTOCK_ASSIGN_OR_RETURN(const int at, NormalAxis(axis, x.rank()));
  PartialShape::Dims dims(x.dims().begin(), x.dims().begin() + at);
  dims.insert(dims.end(), indices.dims().begin(), indices.dims().end());
  dims.insert(dims.end(), x.dims().begin() + at + 1, x.dims().end());
  result.shape = PartialShape(std::move(dims));
  return result;
}

absl::StatusOr<Column> EvalTake(absl::Span<const Arg> args, const Attrs& attrs,
                                const TensorSpec&, EvalContext& context) {
  const Column& x = *args[0].column;
  const Column indices = Cast(*args[1].column, DType::kInt64);
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(attrs, "axis", 0));
  PENSTOCK_ASSIGN_OR_RETURN(const int at, NormalAxis(axis, x.rank()));
  const size_t item_size = ItemSize(x.dtype());
  const Arg strings[] = {args[0]};
  return MakeRows(
      x.dtype(), x.rank() - 1 + indices.rank(), ResultRows(args, context),
      /*has_one_shape=*/false, StringPins(strings), context,
      [&](int64_t row, int64_t* dims) {
        const absl::Span<const int64_t> shape =
            x.RowShape(RowIndex(args[0], row));
        const int64_t of = RowIndex(args[1], row);
        const int64_t* index = indices.Row<int64_t>(of);
        const int64_t count = indices.RowItems(of);
        for (int64_t i = 0; i < count; ++i) {
          if (index[i] < -shape[at] || index[i] >= shape[at]) {
            return absl::InvalidArgumentError(
                absl::StrCat("index ", index[i], " is out of bounds for axis ",
                             at, " with size ", shape[at]));
          }
        }
        const absl::Span<const int64_t> middle = indices.RowShape(of);
        dims = std::copy_n(shape.begin(), at, dims);
        dims = std::copy(middle.begin(), middle.end(), dims);
        std::copy(shape.begin() + at + 1, shape.end(), dims);
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t>, std::byte* out) {
        const int64_t own = RowIndex(args[0], row);
        const absl::Span<const int64_t> shape = x.RowShape(own);
        const int64_t outer = NumItems(shape.subspan(0, at));
        const size_t run = NumItems(shape.subspan(at + 1)) * item_size;
        const int64_t of = RowIndex(args[1], row);
        const int64_t* index = indices.Row<int64_t>(of);
        const int64_t count = indices.RowItems(of);
        if (run == 0) return;
        const std::byte* from = x.RowData(own);
        for (int64_t o = 0; o < outer; ++o, from += shape[at] * run) {
          for (int64_t i = 0; i < count; ++i, out += run) {
            const int64_t k = index[i] < 0 ? index[i] + shape[at] : index[i];
            std::memcpy(out, from + k * run, run);
          }
        }
      });
}

absl::StatusOr<TensorSpec> InferMask(absl::Span<const ArgSpec> args,
                                     const Attrs&) {
  TensorSpec result = args[0].spec;
  const PartialShape& x = args[0].spec.shape;
  const PartialShape& mask = args[1].spec.shape;
  if (args[1].spec.dtype != DType::kBool) {
    return absl::InvalidArgumentError(absl::StrCat(
        "boolean_mask's mask must be bool; got ", args[1].spec.ToString()));
  }
  if (!x.has_rank() || !mask.has_rank()) {
    result.shape = PartialShape::UnknownRank();
    return result;
  }
  if (mask.rank() < 1 || mask.rank() > x.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("boolean_mask's mask must have 1 to ", x.rank(),
                     " dimensions; got ", mask.rank()));
  }
  for (int i = 0; i < mask.rank(); ++i) {
    if (mask.dims()[i] && x.dims()[i] && mask.dims()[i] != x.dims()[i]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "boolean index did not match indexed array along axis ", i,
          "; size of axis is ", *x.dims()[i],
          " but size of corresponding boolean axis is ", *mask.dims()[i]));
    }
  }
  PartialShape::Dims dims{std::nullopt};
  dims.insert(dims.end(), x.dims().begin() + mask.rank(), x.dims().end());
  result.shape = PartialShape(std::move(dims));
  return result;
}

absl::StatusOr<Column> EvalMask(absl::Span<const Arg> args, const Attrs&,
                                const TensorSpec&, EvalContext& context) {
  const Column& x = *args[0].column;
  const Column& mask = *args[1].column;
  if (mask.rank() < 1 || mask.rank() > x.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("boolean_mask's mask must have 1 to ", x.rank(),
                     " dimensions; got ", mask.rank()));
  }
  const size_t item_size = ItemSize(x.dtype());
  return MakeRows(
      x.dtype(), x.rank() - mask.rank() + 1, ResultRows(args, context),
      /*has_one_shape=*/false, StringPins(args), context,
      [&](int64_t row, int64_t* dims) {
        const absl::Span<const int64_t> shape =
            x.RowShape(RowIndex(args[0], row));
        const int64_t of = RowIndex(args[1], row);
        for (int i = 0; i < mask.rank(); ++i) {
          if (mask.RowShape(of)[i] != shape[i]) {
            return absl::InvalidArgumentError(absl::StrCat(
                "boolean index did not match indexed array along axis ", i,
                "; size of axis is ", shape[i],
                " but size of corresponding boolean axis is ",
                mask.RowShape(of)[i]));
          }
        }
        const bool* keep = mask.Row<bool>(of);
        dims[0] = std::count(keep, keep + mask.RowItems(of), true);
        std::copy(shape.begin() + mask.rank(), shape.end(), dims + 1);
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        const int64_t of = RowIndex(args[1], row);
        const bool* keep = mask.Row<bool>(of);
        const std::byte* from = x.RowData(RowIndex(args[0], row));
        const size_t run = NumItems(shape.subspan(1)) * item_size;
        if (run == 0) return;
        const int64_t count = mask.RowItems(of);
        for (int64_t i = 0; i < count; ++i, from += run) {
          if (!keep[i]) continue;
          std::memcpy(out, from, run);
          out += run;
        }
      });
}

absl::StatusOr<TensorSpec> InferScatter(absl::Span<const ArgSpec> args,
                                        const Attrs&) {
  const ArgSpec& size = args[2];
  TensorSpec result = args[1].spec;
  if (!IsInteger(args[0].spec.dtype) || args[3].spec.dtype != result.dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("scatter's indices must be integers, and its filler of "
                     "the dtype of its values; got ",
                     args[0].spec.ToString(), ", ", args[3].spec.ToString(),
                     " and ", result.ToString()));
  }
  for (const int i : {0, 1}) {
    const PartialShape& shape = args[i].spec.shape;
    if (shape.has_rank() && shape.rank() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("scatter's indices and values must be vectors; got ",
                       args[i].spec.ToString()));
    }
  }
  PENSTOCK_RETURN_IF_ERROR(CheckInts("scatter's size", size, 0));
  PartialShape::Dims dims{std::nullopt};
  if (const std::optional<Ints> known = ConstantInts(size)) {
    if (known->size() == 1 && known->front() >= 0) dims[0] = known->front();
  }
  result.shape = PartialShape(std::move(dims));
  return result;
}

absl::StatusOr<Column> EvalScatter(absl::Span<const Arg> args, const Attrs&,
                                   const TensorSpec& result,
                                   EvalContext& context) {
  const Column indices = Cast(*args[0].column, DType::kInt64);
  const Column& values = *args[1].column;
  const Column& filler = *args[3].column;
  const size_t item_size = ItemSize(result.dtype);
  if (indices.rank() != 1 || values.rank() != 1 || filler.rank() != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "scatter needs vectors and a scalar to fill with; got "
        "ranks ",
        indices.rank(), ", ", values.rank(), " and ", filler.rank()));
  }
  const Arg strings[] = {args[1], args[3]};
  return MakeRows(
      result.dtype, 1, ResultRows(args, context), /*has_one_shape=*/false,
      StringPins(strings), context,
      [&](int64_t row, int64_t* dims) {
        const int64_t of = RowIndex(args[0], row);
        const int64_t* index = indices.Row<int64_t>(of);
        const int64_t count = indices.RowItems(of);
        const int64_t size = ReadInt(*args[2].column, RowIndex(args[2], row));
        const int64_t given = values.RowItems(RowIndex(args[1], row));
        if (count != given || size < 0) {
          return absl::InvalidArgumentError(absl::StrCat(
              "scatter needs as many values as indices and a size of 0 or "
              "more; got ",
              given, ", ", count, " and ", size));
        }
        for (int64_t i = 0; i < count; ++i) {
          if (index[i] < 0 || index[i] >= size) {
            return absl::InvalidArgumentError(absl::StrCat(
                "index ", index[i], " is out of bounds for size ", size));
          }
        }
        dims[0] = size;
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        const std::byte* fill = filler.RowData(RowIndex(args[3], row));
        for (int64_t i = 0; i < shape[0]; ++i) {
          std::memcpy(out + i * item_size, fill, item_size);
        }
        const int64_t of = RowIndex(args[0], row);
        const int64_t* index = indices.Row<int64_t>(of);
        const int64_t count = indices.RowItems(of);
        const std::byte* from = values.RowData(RowIndex(args[1], row));
        for (int64_t i = 0; i < count; ++i, from += item_size) {
          std::memcpy(out + index[i] * item_size, from, item_size);
        }
      });
}

absl::StatusOr<TensorSpec> InferOneHot(absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  TensorSpec result;
  PENSTOCK_ASSIGN_OR_RETURN(result.dtype,
                            DTypeAttr(attrs, "dtype", DType::kFloat32));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t depth, IntAttr(attrs, "depth", 0));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(attrs, "axis", -1));
  if (!IsInteger(args[0].spec.dtype) || result.dtype == DType::kString ||
      depth < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "one_hot needs integer indices, a depth of 0 or more and a number's "
        "dtype; got ",
        args[0].spec.ToString(), ", ", depth, " and ",
        Text(Name(result.dtype))));
  }
  if (!args[0].spec.shape.has_rank()) {
    result.shape = PartialShape::UnknownRank();
    return result;
  }
  PartialShape::Dims dims = args[0].spec.shape.dims();
  PENSTOCK_ASSIGN_OR_RETURN(
      const int at, NormalAxis(axis, static_cast<int>(dims.size()) + 1));
  dims.insert(dims.begin() + at, depth);
  result.shape = PartialShape(std::move(dims));
  return result;
}

absl::StatusOr<Column> EvalOneHot(absl::Span<const Arg> args,
                                  const Attrs& attrs, const TensorSpec& result,
                                  EvalContext& context) {
  const Column indices = Cast(*args[0].column, DType::kInt64);
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t depth, IntAttr(attrs, "depth", 0));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(attrs, "axis", -1));
  PENSTOCK_ASSIGN_OR_RETURN(const int at, NormalAxis(axis, indices.rank() + 1));
  PENSTOCK_ASSIGN_OR_RETURN(const double on_value,
                            FloatAttr(attrs, "on_value", 1));
  PENSTOCK_ASSIGN_OR_RETURN(const double off_value,
                            FloatAttr(attrs, "off_value", 0));
  const Column values =
      Cast(MakeColumn<double>({on_value, off_value}), result.dtype);
  return VisitDType(result.dtype, [&](auto item) -> absl::StatusOr<Column> {
    using T = decltype(item);
    const T on = *values.Row<T>(0);
    const T off = *values.Row<T>(1);
    return MakeRows(
        result.dtype, indices.rank() + 1, ResultRows(args, context),
        indices.is_dense(), {}, context,
        [&](int64_t row, int64_t* dims) {
          const absl::Span<const int64_t> shape = indices.RowShape(row);
          dims = std::copy_n(shape.begin(), at, dims);
          *dims++ = depth;
          std::copy(shape.begin() + at, shape.end(), dims);
          return absl::OkStatus();
        },
        [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
          T* to = reinterpret_cast<T*>(out);
          std::fill_n(to, NumItems(shape), off);
          const int64_t inner = NumItems(shape.subspan(at + 1));
          const int64_t* index = indices.Row<int64_t>(row);
          const int64_t count = indices.RowItems(row);
          for (int64_t i = 0; i < count; ++i) {
            if (index[i] < 0 || index[i] >= depth) continue;
            to[(i / inner * depth + index[i]) * inner + i % inner] = on;
          }
        });
  });
}

}  // namespace

std::vector<Function> GatherFunctions() {
  return {
      {.name = "take",
       .params = {{"x", ParamKind::kTensor, "", "The values."},
                  {"indices", ParamKind::kTensor, "",
                   "Integers; negative ones count from the end."},
                  {"axis", ParamKind::kInt, "0", "Along which they count."}},
       .doc = "Entries of x by number: x[indices] along an axis.",
       .example = ">>> ps.take(np.array([10, 20, 30]), np.array([2, 0]))\n"
                  "array([30, 10])",
       .infer = InferTake,
       .eval = EvalTake},
      {.name = "boolean_mask",
       .params = {{"x", ParamKind::kTensor, "", "The values."},
                  {"mask", ParamKind::kTensor, "",
                   "Bools in the shape of x's first dimensions."}},
       .doc = "Entries of x where the mask holds: x[mask].",
       .example = ">>> ps.boolean_mask(np.array([1, 2]), "
                  "np.array([False, True]))\narray([2])",
       .infer = InferMask,
       .eval = EvalMask},
      {.name = "scatter",
       .params = {{"indices", ParamKind::kTensor, "",
                   "A vector of integers from 0 on, below the size."},
                  {"values", ParamKind::kTensor, "", "As many values."},
                  {"size", ParamKind::kTensor, "", "Of the result."},
                  {"filler", ParamKind::kTensor, "",
                   "What the other places hold, of the same dtype."}},
       .doc = "A vector with values at their places; of two for one place, the "
              "last.",
       .example = ">>> ps.scatter(np.array([2, 0]), np.array([7, 8]), 4, "
                  "np.int64(0))\narray([8, 0, 7, 0])",
       .infer = InferScatter,
       .eval = EvalScatter},
      {.name = "one_hot",
       .params = {{"indices", ParamKind::kTensor, "", "Integers."},
                  {"depth", ParamKind::kInt, "", "Size of the new axis."},
                  {"on_value", ParamKind::kFloat, "1", "At the index."},
                  {"off_value", ParamKind::kFloat, "0", "Elsewhere."},
                  {"axis", ParamKind::kInt, "-1", "Where the new one stands."},
                  {"dtype", ParamKind::kDType, "float32",
                   "That of the result."}},
       .doc = "Vectors with one value at an index and another elsewhere; an "
              "index outside gives the other everywhere.",
       .example = ">>> ps.one_hot(np.array([1, 0]), 2)\n"
                  "array([[0., 1.],\n       [1., 0.]], dtype=float32)",
       .infer = InferOneHot,
       .eval = EvalOneHot},
  };
}

}  // namespace penstock::functions
