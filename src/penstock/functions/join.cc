#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/cast.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

// The arguments in one dtype.
class CastArgs final {
 public:
  CastArgs(absl::Span<const Arg> args, DType dtype) {
    columns_.reserve(args.size());
    for (const Arg& arg : args) {
      args_.push_back(arg);
      if (arg.column->dtype() == dtype) continue;
      columns_.push_back(Cast(*arg.column, dtype));
      args_.back().column = &columns_.back();
    }
  }
  absl::Span<const Arg> args() const { return args_; }

 private:
  std::vector<Column> columns_;
  absl::InlinedVector<Arg, 4> args_;
};

bool AllDense(absl::Span<const Arg> args) {
  return std::all_of(args.begin(), args.end(), HasOneShape);
}

void CopyBytes(std::byte* to, const std::byte* from, size_t count) {
  if (count == 8) {
    std::memcpy(to, from, 8);
  } else if (count == 4) {
    std::memcpy(to, from, 4);
  } else if (count > 0) {
    std::memcpy(to, from, count);
  }
}

// Writes the items of all arguments' rows, each `outer` times a run of its own.
void Interleave(absl::Span<const Arg> args, int64_t row, int64_t outer,
                size_t item_size, std::byte* out) {
  for (int64_t o = 0; o < outer; ++o) {
    for (const Arg& arg : args) {
      const int64_t own = RowIndex(arg, row);
      const size_t run = arg.column->RowItems(own) / outer * item_size;
      CopyBytes(out, arg.column->RowData(own) + o * run, run);
      out += run;
    }
  }
}

absl::StatusOr<DType> JoinedDType(std::string_view name,
                                  absl::Span<const ArgSpec> args) {
  PENSTOCK_ASSIGN_OR_RETURN(const DType dtype, PromoteOrError(name, args));
  for (const ArgSpec& arg : args) {
    PENSTOCK_RETURN_IF_ERROR(CheckFits(arg, dtype));
  }
  return dtype;
}

absl::Status StackError(std::string_view first, std::string_view other) {
  return absl::InvalidArgumentError(
      absl::StrCat("all input arrays must have the same shape; got ",
                   Text(first), " and ", Text(other)));
}

absl::StatusOr<TensorSpec> InferStack(absl::Span<const ArgSpec> args,
                                      const Attrs& attrs) {
  TensorSpec result;
  PENSTOCK_ASSIGN_OR_RETURN(result.dtype, JoinedDType("stack", args));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(attrs, "axis", 0));
  PartialShape::Dims dims;
  bool has_rank = false;
  const auto differs = [&](const PartialShape& shape) {
    return StackError(PartialShape(dims).ToString(), shape.ToString());
  };
  for (const ArgSpec& arg : args) {
    const PartialShape& shape = arg.spec.shape;
    if (!shape.has_rank()) continue;
    if (!has_rank) {
      dims = shape.dims();
      has_rank = true;
      continue;
    }
    if (shape.dims().size() != dims.size()) return differs(shape);
    for (size_t i = 0; i < dims.size(); ++i) {
      const std::optional<int64_t> dim = shape.dims()[i];
      if (dim && dims[i] && dim != dims[i]) return differs(shape);
      if (dim) dims[i] = dim;
    }
  }
  if (!has_rank) {
    result.shape = PartialShape::UnknownRank();
    return result;
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      const int at, NormalAxis(axis, static_cast<int>(dims.size()) + 1));
  dims.insert(dims.begin() + at, static_cast<int64_t>(args.size()));
  result.shape = PartialShape(std::move(dims));
  return result;
}

absl::StatusOr<Column> EvalStack(absl::Span<const Arg> args, const Attrs& attrs,
                                 const TensorSpec& result,
                                 EvalContext& context) {
  const CastArgs cast(args, result.dtype);
  const Column& first = *cast.args()[0].column;
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(attrs, "axis", 0));
  PENSTOCK_ASSIGN_OR_RETURN(const int at, NormalAxis(axis, first.rank() + 1));
  if (args.size() == 1 && first.is_dense()) {
    Shape shape = first.shape();
    shape.insert(shape.begin() + at, 1);
    return first.Reshape(first.rows(), std::move(shape));
  }
  const size_t item_size = ItemSize(result.dtype);
  return MakeRows(
      result.dtype, first.rank() + 1, ResultRows(args, context),
      AllDense(cast.args()), StringPins(args), context,
      [&](int64_t row, int64_t* dims) {
        const absl::Span<const int64_t> shape =
            first.RowShape(RowIndex(cast.args()[0], row));
        for (const Arg& arg : cast.args()) {
          const absl::Span<const int64_t> other =
              arg.column->RowShape(RowIndex(arg, row));
          if (other != shape) {
            return StackError(ToString(shape), ToString(other));
          }
        }
        dims = std::copy_n(shape.begin(), at, dims);
        *dims++ = static_cast<int64_t>(args.size());
        std::copy(shape.begin() + at, shape.end(), dims);
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        const int64_t outer = NumItems(shape.subspan(0, at));
        if (outer > 0) Interleave(cast.args(), row, outer, item_size, out);
      });
}

absl::Status ConcatError(size_t axis, size_t first, int64_t size,
                         int64_t other) {
  return absl::InvalidArgumentError(absl::StrCat(
      "all the input array dimensions except for the concatenation axis must "
      "match exactly, but along dimension ",
      axis, ", the array at index 0 has size ", size,
      " and the array at index ", first, " has size ", other));
}

absl::StatusOr<TensorSpec> InferConcat(absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  TensorSpec result;
  PENSTOCK_ASSIGN_OR_RETURN(result.dtype, JoinedDType("concat", args));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(attrs, "axis", 0));
  for (const ArgSpec& arg : args) {
    if (!arg.spec.shape.has_rank()) {
      result.shape = PartialShape::UnknownRank();
      return result;
    }
  }
  PartialShape::Dims dims = args[0].spec.shape.dims();
  if (dims.empty()) {
    return absl::InvalidArgumentError(
        "zero-dimensional arrays cannot be concatenated");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const int at,
                            NormalAxis(axis, static_cast<int>(dims.size())));
  for (size_t k = 1; k < args.size(); ++k) {
    const PartialShape::Dims& own = args[k].spec.shape.dims();
    if (own.size() != dims.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "all the input arrays must have the same number of dimensions; got ",
          dims.size(), " and ", own.size()));
    }
    for (size_t i = 0; i < dims.size(); ++i) {
      if (static_cast<int>(i) == at) {
        dims[i] = dims[i] && own[i] ? std::optional<int64_t>(*dims[i] + *own[i])
                                    : std::nullopt;
      } else if (dims[i] && own[i] && dims[i] != own[i]) {
        return ConcatError(i, k, *dims[i], *own[i]);
      } else if (own[i]) {
        dims[i] = own[i];
      }
    }
  }
  result.shape = PartialShape(std::move(dims));
  return result;
}

absl::StatusOr<Column> EvalConcat(absl::Span<const Arg> args,
                                  const Attrs& attrs, const TensorSpec& result,
                                  EvalContext& context) {
  const CastArgs cast(args, result.dtype);
  const int rank = cast.args()[0].column->rank();
  for (const Arg& arg : cast.args()) {
    if (arg.column->rank() != rank || rank == 0) {
      return absl::InvalidArgumentError(
          "all the input arrays must have the same number of dimensions, at "
          "least 1");
    }
  }
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t axis, IntAttr(attrs, "axis", 0));
  PENSTOCK_ASSIGN_OR_RETURN(const int at, NormalAxis(axis, rank));
  const size_t item_size = ItemSize(result.dtype);
  return MakeRows(
      result.dtype, rank, ResultRows(args, context), AllDense(cast.args()),
      StringPins(args), context,
      [&](int64_t row, int64_t* dims) {
        for (size_t k = 0; k < args.size(); ++k) {
          const Arg& arg = cast.args()[k];
          const absl::Span<const int64_t> shape =
              arg.column->RowShape(RowIndex(arg, row));
          for (int i = 0; i < rank; ++i) {
            if (k == 0) {
              dims[i] = shape[i];
            } else if (i == at) {
              dims[i] += shape[i];
            } else if (dims[i] != shape[i]) {
              return ConcatError(i, k, dims[i], shape[i]);
            }
          }
        }
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        const int64_t outer = NumItems(shape.subspan(0, at));
        if (outer > 0) Interleave(cast.args(), row, outer, item_size, out);
      });
}

}  // namespace

std::vector<Function> JoinFunctions() {
  return {
      {.name = "stack",
       .params = {{"values", ParamKind::kTensors, "", "Values of one shape."},
                  {"axis", ParamKind::kInt, "0", "Where the new one stands."}},
       .doc = "Joins values of one shape along a new axis.",
       .example = ">>> ps.stack([np.array([1, 2]), np.array([3, 4])])\n"
                  "array([[1, 2],\n       [3, 4]])",
       .infer = InferStack,
       .eval = EvalStack},
      {.name = "concat",
       .params = {{"values", ParamKind::kTensors, "",
                   "Values that differ along the axis only."},
                  {"axis", ParamKind::kInt, "0", "Along which to join."}},
       .doc = "Joins values along an axis that they have.",
       .example = ">>> ps.concat([np.array([1, 2]), np.array([3])])\n"
                  "array([1, 2, 3])",
       .infer = InferConcat,
       .eval = EvalConcat},
  };
}

}  // namespace penstock::functions
