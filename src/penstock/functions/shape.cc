#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/broadcast.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

absl::StatusOr<TensorSpec> InferShape(absl::Span<const ArgSpec> args,
                                      const Attrs&) {
  const PartialShape& shape = args[0].spec.shape;
  PartialShape::Dims dims(1);
  if (shape.has_rank()) dims[0] = shape.rank();
  return TensorSpec{DType::kInt64, PartialShape(std::move(dims))};
}

absl::StatusOr<Column> EvalShape(absl::Span<const Arg> args, const Attrs&,
                                 const TensorSpec&, EvalContext& context) {
  const Column& x = *args[0].column;
  return MakeRows(
      DType::kInt64, 1, ResultRows(args, context), /*has_one_shape=*/true, {},
      context,
      [&](int64_t, int64_t* dims) {
        dims[0] = x.rank();
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t>, std::byte* out) {
        const absl::Span<const int64_t> shape = x.RowShape(row);
        std::copy(shape.begin(), shape.end(), reinterpret_cast<int64_t*>(out));
      });
}

absl::StatusOr<TensorSpec> InferInt(absl::Span<const ArgSpec>, const Attrs&) {
  return TensorSpec{DType::kInt64, {}};
}

template <int64_t (*kCount)(const Column&, int64_t)>
absl::StatusOr<Column> EvalCount(absl::Span<const Arg> args, const Attrs&,
                                 const TensorSpec&, EvalContext& context) {
  const int64_t rows = ResultRows(args, context);
  Buffer values = Buffer::Allocate(rows * sizeof(int64_t));
  int64_t* out = values.MutableAs<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    out[row] = kCount(*args[0].column, row);
  }
  return Column::Dense(DType::kInt64, {}, rows, std::move(values));
}

int64_t SizeOf(const Column& x, int64_t row) { return x.RowItems(row); }
int64_t RankOf(const Column& x, int64_t) { return x.rank(); }

// The shape that `items` items take, given one with at most one -1.
absl::Status Resolve(absl::Span<const int64_t> wanted, int64_t items,
                     int64_t* dims) {
  int64_t known = 1;
  int unknown = -1;
  bool is_valid = true;
  for (size_t i = 0; i < wanted.size(); ++i) {
    dims[i] = wanted[i];
    if (wanted[i] == -1 && unknown < 0) {
      unknown = static_cast<int>(i);
    } else {
      is_valid = is_valid && wanted[i] >= 0 &&
                 !__builtin_mul_overflow(known, wanted[i], &known);
    }
  }
  if (is_valid && unknown >= 0) {
    is_valid = known > 0 && items % known == 0;
    if (is_valid) dims[unknown] = items / known;
  } else {
    is_valid = is_valid && known == items;
  }
  if (is_valid) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot reshape array of size ", items, " into shape ",
                   ToString(wanted)));
}

absl::StatusOr<TensorSpec> InferReshape(absl::Span<const ArgSpec> args,
                                        const Attrs&) {
  TensorSpec result = args[0].spec;
  PENSTOCK_RETURN_IF_ERROR(CheckInts("reshape's shape", args[1], 1));
  const bool is_known = result.shape.is_fully_known();
  if (const std::optional<Ints> wanted = ConstantInts(args[1])) {
    if (is_known) {
      Shape dims(wanted->size());
      PENSTOCK_RETURN_IF_ERROR(
          Resolve(*wanted, NumItems(result.shape.ToShape()), dims.data()));
      result.shape = PartialShape(absl::Span<const int64_t>(dims));
      return result;
    }
    PartialShape::Dims dims;
    for (int64_t dim : *wanted) {
      dims.push_back(dim < 0 ? std::optional<int64_t>() : dim);
    }
    result.shape = PartialShape(std::move(dims));
    return result;
  }
  const std::optional<int64_t> rank = KnownCount(args[1]);
  result.shape = rank ? PartialShape(PartialShape::Dims(*rank))
                      : PartialShape::UnknownRank();
  return result;
}

absl::StatusOr<Column> EvalReshape(absl::Span<const Arg> args, const Attrs&,
                                   const TensorSpec&, EvalContext& context) {
  const Column& x = *args[0].column;
  const int64_t rows = ResultRows(args, context);
  PENSTOCK_ASSIGN_OR_RETURN(const int rank, RankFrom(args[1], rows));
  if (x.is_dense() && args[1].is_uniform) {
    Shape dims(rank);
    if (Resolve(ReadInts(*args[1].column, 0), NumItems(x.shape()), dims.data())
            .ok()) {
      return x.Reshape(rows, std::move(dims));
    }
  }
  return MakeViews(
      args[0], rank, rows, context, [&](int64_t row, int64_t* dims) {
        return Resolve(ReadInts(*args[1].column, RowIndex(args[1], row)),
                       x.RowItems(RowIndex(args[0], row)), dims);
      });
}

absl::StatusOr<TensorSpec> InferExpandDims(absl::Span<const ArgSpec> args,
                                           const Attrs& attrs) {
  TensorSpec result = args[0].spec;
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(attrs, "axis", 0));
  if (!result.shape.has_rank()) return result;
  PENSTOCK_ASSIGN_OR_RETURN(const int at,
                            NormalAxis(axis, result.shape.rank() + 1));
  PartialShape::Dims dims = result.shape.dims();
  dims.insert(dims.begin() + at, 1);
  result.shape = PartialShape(std::move(dims));
  return result;
}

absl::StatusOr<Column> EvalExpandDims(absl::Span<const Arg> args,
                                      const Attrs& attrs, const TensorSpec&,
                                      EvalContext& context) {
  const Column& x = *args[0].column;
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(attrs, "axis", 0));
  PENSTOCK_ASSIGN_OR_RETURN(const int at, NormalAxis(axis, x.rank() + 1));
  if (x.is_dense()) {
    Shape shape = x.shape();
    shape.insert(shape.begin() + at, 1);
    return x.Reshape(x.rows(), std::move(shape));
  }
  return MakeViews(args[0], x.rank() + 1, x.rows(), context,
                   [&](int64_t row, int64_t* dims) {
                     const absl::Span<const int64_t> own = x.RowShape(row);
                     dims = std::copy_n(own.begin(), at, dims);
                     *dims++ = 1;
                     std::copy(own.begin() + at, own.end(), dims);
                     return absl::OkStatus();
                   });
}

// Which axes squeeze() takes away; they have size 1, or are not known.
absl::StatusOr<Ints> SqueezedAxes(const Attrs& attrs,
                                  const PartialShape& shape) {
  PENSTOCK_ASSIGN_OR_RETURN(std::optional<Ints> axes, AxisAttr(attrs, "axis"));
  Ints squeezed;
  if (axes.has_value()) {
    for (int64_t axis : *axes) {
      PENSTOCK_ASSIGN_OR_RETURN(const int at, NormalAxis(axis, shape.rank()));
      if (std::find(squeezed.begin(), squeezed.end(), at) != squeezed.end()) {
        return absl::InvalidArgumentError("duplicate value in axis");
      }
      squeezed.push_back(at);
    }
  } else {
    for (int i = 0; i < shape.rank(); ++i) {
      if (!shape.dims()[i]) {
        return absl::InvalidArgumentError(absl::StrCat(
            "squeeze of dimensions that are not known needs axis; got ",
            shape.ToString()));
      }
      if (shape.dims()[i] == 1) squeezed.push_back(i);
    }
  }
  for (int64_t axis : squeezed) {
    if (shape.dims()[axis].value_or(1) != 1) {
      return absl::InvalidArgumentError(
          "cannot select an axis to squeeze out which has size not equal to "
          "one");
    }
  }
  return squeezed;
}

absl::StatusOr<TensorSpec> InferSqueeze(absl::Span<const ArgSpec> args,
                                        const Attrs& attrs) {
  TensorSpec result = args[0].spec;
  if (!result.shape.has_rank()) {
    return absl::InvalidArgumentError("squeeze needs a value of known rank");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Ints squeezed,
                            SqueezedAxes(attrs, result.shape));
  PartialShape::Dims dims;
  for (int i = 0; i < result.shape.rank(); ++i) {
    if (std::find(squeezed.begin(), squeezed.end(), i) == squeezed.end()) {
      dims.push_back(result.shape.dims()[i]);
    }
  }
  result.shape = PartialShape(std::move(dims));
  return result;
}

absl::StatusOr<Column> EvalSqueeze(absl::Span<const Arg> args,
                                   const Attrs& attrs, const TensorSpec& result,
                                   EvalContext& context) {
  const Column& x = *args[0].column;
  PENSTOCK_ASSIGN_OR_RETURN(std::optional<Ints> axes, AxisAttr(attrs, "axis"));
  const int rank = result.shape.rank();
  // Without axes every dimension is known, and so is the result's shape.
  auto squeeze = [&](absl::Span<const int64_t> shape, int64_t* dims) {
    if (!axes.has_value()) {
      return Resolve(result.shape.ToShape(), NumItems(shape), dims);
    }
    const PartialShape partial(shape);
    const absl::StatusOr<Ints> squeezed = SqueezedAxes(attrs, partial);
    if (!squeezed.ok()) return squeezed.status();
    for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i) {
      if (std::find(squeezed->begin(), squeezed->end(), i) == squeezed->end()) {
        *dims++ = shape[i];
      }
    }
    return absl::OkStatus();
  };
  if (x.is_dense()) {
    Shape dims(rank);
    if (squeeze(x.shape(), dims.data()).ok()) {
      return x.Reshape(x.rows(), std::move(dims));
    }
  }
  return MakeViews(args[0], rank, x.rows(), context,
                   [&](int64_t row, int64_t* dims) {
                     return squeeze(x.RowShape(row), dims);
                   });
}

// axes[i]: which axis of x becomes axis i.
absl::StatusOr<Ints> Permutation(const Attrs& attrs, int rank) {
  PENSTOCK_ASSIGN_OR_RETURN(std::optional<Ints> axes, AxisAttr(attrs, "axes"));
  Ints permutation(rank);
  if (!axes.has_value()) {
    std::iota(permutation.rbegin(), permutation.rend(), 0);
    return permutation;
  }
  if (static_cast<int>(axes->size()) != rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "axes must be ", rank, " numbers; got ", absl::StrJoin(*axes, ", ")));
  }
  uint64_t seen = 0;
  for (int i = 0; i < rank; ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(const int axis, NormalAxis((*axes)[i], rank));
    if ((seen >> axis) & 1) {
      return absl::InvalidArgumentError("repeated axis in transpose");
    }
    seen |= uint64_t{1} << axis;
    permutation[i] = axis;
  }
  return permutation;
}

absl::StatusOr<TensorSpec> InferTranspose(absl::Span<const ArgSpec> args,
                                          const Attrs& attrs) {
  TensorSpec result = args[0].spec;
  if (!result.shape.has_rank()) return result;
  PENSTOCK_ASSIGN_OR_RETURN(const Ints axes,
                            Permutation(attrs, result.shape.rank()));
  PartialShape::Dims dims;
  for (int64_t axis : axes) dims.push_back(result.shape.dims()[axis]);
  result.shape = PartialShape(std::move(dims));
  return result;
}

absl::StatusOr<Column> EvalTranspose(absl::Span<const Arg> args,
                                     const Attrs& attrs, const TensorSpec&,
                                     EvalContext& context) {
  const Column& x = *args[0].column;
  PENSTOCK_ASSIGN_OR_RETURN(const Ints axes, Permutation(attrs, x.rank()));
  const size_t item_size = ItemSize(x.dtype());
  return MakeRows(
      x.dtype(), x.rank(), x.rows(), x.is_dense(), StringPins(args), context,
      [&](int64_t row, int64_t* dims) {
        const absl::Span<const int64_t> own = x.RowShape(row);
        for (int64_t axis : axes) *dims++ = own[axis];
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        const Shape own = ContiguousStrides(x.RowShape(row), item_size);
        Shape strides;
        for (int64_t axis : axes) strides.push_back(own[axis]);
        CopyStrided(x.RowData(row), shape, strides, item_size, out);
      });
}

Param X(std::string_view doc = "The values.") {
  return {"x", ParamKind::kTensor, "", doc};
}

}  // namespace

std::vector<Function> ShapeFunctions() {
  return {
      {.name = "shape",
       .params = {X()},
       .doc = "The dimensions of x, as int64.",
       .example = ">>> ps.shape(np.zeros((2, 3)))\narray([2, 3])",
       .infer = InferShape,
       .eval = EvalShape},
      {.name = "size",
       .params = {X()},
       .doc = "The number of items of x, as int64.",
       .example = ">>> int(ps.size(np.zeros((2, 3))))\n6",
       .infer = InferInt,
       .eval = EvalCount<SizeOf>},
      {.name = "rank",
       .params = {X()},
       .doc = "The number of dimensions of x, as int64.",
       .example = ">>> int(ps.rank(np.zeros((2, 3))))\n2",
       .infer = InferInt,
       .eval = EvalCount<RankOf>},
      {.name = "reshape",
       .params = {X(),
                  {"shape", ParamKind::kTensor, "",
                   "The new dimensions; one may be -1: what is left."}},
       .doc = "The same items with other dimensions.",
       .example = ">>> ps.reshape(np.arange(4), (2, -1))\n"
                  "array([[0, 1],\n       [2, 3]])",
       .infer = InferReshape,
       .eval = EvalReshape},
      {.name = "expand_dims",
       .params = {X(),
                  {"axis", ParamKind::kInt, "", "Where the new one stands."}},
       .doc = "x with one more dimension, of size 1.",
       .example = ">>> ps.expand_dims(np.array([1, 2]), 1)\n"
                  "array([[1],\n       [2]])",
       .infer = InferExpandDims,
       .eval = EvalExpandDims},
      {.name = "squeeze",
       .params = {X(),
                  {"axis", ParamKind::kAxis, "None",
                   "Which to take away; None means all of size 1."}},
       .doc = "x without dimensions of size 1.",
       .example = ">>> ps.squeeze(np.array([[1, 2]]))\narray([1, 2])",
       .infer = InferSqueeze,
       .eval = EvalSqueeze},
      {.name = "transpose",
       .params = {X(),
                  {"axes", ParamKind::kAxis, "None",
                   "The axes in their new order; None means reversed."}},
       .doc = "x with its dimensions in another order.",
       .example = ">>> ps.transpose(np.array([[1, 2], [3, 4]]))\n"
                  "array([[1, 3],\n       [2, 4]])",
       .infer = InferTranspose,
       .eval = EvalTranspose},
  };
}

}  // namespace penstock::functions
