#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/broadcast.h"
#include "penstock/functions/elementwise.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/number.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

// A run of items, `stride` bytes apart.
template <typename T>
struct Run {
  const std::byte* base;
  int64_t stride;
  int64_t count;

  ComputeType<T> operator[](int64_t i) const {
    return static_cast<ComputeType<T>>(
        *reinterpret_cast<const T*>(base + i * stride));
  }
  Run Part(int64_t begin, int64_t size) const {
    return {base + begin * stride, stride, size};
  }
};

// numpy's order of summation: eight sums side by side, halves of long runs
// apart, so that the error grows with the logarithm of the count.
template <typename Acc, typename T>
Acc PairwiseSum(const Run<T>& run) {
  if (run.count < 8) {
    Acc sum{};
    for (int64_t i = 0; i < run.count; ++i) sum += static_cast<Acc>(run[i]);
    return sum;
  }
  if (run.count <= 128) {
    Acc sums[8];
    for (int k = 0; k < 8; ++k) sums[k] = static_cast<Acc>(run[k]);
    int64_t i = 8;
    for (; i + 8 <= run.count; i += 8) {
      for (int k = 0; k < 8; ++k) sums[k] += static_cast<Acc>(run[i + k]);
    }
    Acc sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
              ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; i < run.count; ++i) sum += static_cast<Acc>(run[i]);
    return sum;
  }
  const int64_t half = run.count / 2 / 8 * 8;
  return PairwiseSum<Acc>(run.Part(0, half)) +
         PairwiseSum<Acc>(run.Part(half, run.count - half));
}

// What sums and products of T are held in. Integers wrap, so signed ones are
// added as unsigned.
template <typename T>
using Total =
    std::conditional_t<std::is_integral_v<T>, uint64_t, ComputeType<T>>;
// And what they become.
template <typename T>
using TotalItem = std::conditional_t<
    std::is_integral_v<T>,
    std::conditional_t<std::is_unsigned_v<T> && !Bool<T>, uint64_t, int64_t>,
    T>;

template <typename T>
struct Sum {
  using Out = TotalItem<T>;
  Total<T> total{};
  void Add(const Run<T>& run) {
    if constexpr (std::is_integral_v<T>) {
      for (int64_t i = 0; i < run.count; ++i) {
        total += static_cast<uint64_t>(static_cast<Out>(run[i]));
      }
    } else {
      total += PairwiseSum<Total<T>>(run);
    }
  }
  Out Result(int64_t) const { return static_cast<Out>(total); }
};

template <typename T>
struct Product {
  using Out = TotalItem<T>;
  Total<T> total{1};
  void Add(const Run<T>& run) {
    for (int64_t i = 0; i < run.count; ++i) {
      if constexpr (Complex<T>) {
        total = Times(total, run[i]);
      } else if constexpr (std::is_integral_v<T>) {
        total *= static_cast<uint64_t>(static_cast<Out>(run[i]));
      } else {
        total *= run[i];
      }
    }
  }
  Out Result(int64_t) const { return static_cast<Out>(total); }
};

template <typename T>
struct Mean {
  using Acc = std::conditional_t<std::is_integral_v<T>, double, ComputeType<T>>;
  using Out = std::conditional_t<std::is_integral_v<T>, double, T>;
  Acc total{};
  void Add(const Run<T>& run) { total += PairwiseSum<Acc>(run); }
  Out Result(int64_t count) const {
    if constexpr (Complex<T>) {
      const auto size = static_cast<typename T::value_type>(count);
      return T(total.real() / size, total.imag() / size);
    } else {
      return static_cast<Out>(total / static_cast<Acc>(count));
    }
  }
};

template <typename T, bool kIsMax>
struct Extreme {
  using Out = T;
  bool has_value = false;
  ComputeType<T> value{};
  void Add(const Run<T>& run) {
    int64_t i = 0;
    if (!has_value && run.count > 0) {
      value = run[i++];
      has_value = true;
    }
    for (; i < run.count; ++i) {
      value = kIsMax ? Maximum(value, run[i]) : Minimum(value, run[i]);
    }
  }
  Out Result(int64_t) const { return static_cast<Out>(value); }
};
template <typename T>
using Min = Extreme<T, false>;
template <typename T>
using Max = Extreme<T, true>;

template <typename T, bool kIsMax>
struct ArgExtreme {
  using Out = int64_t;
  bool has_value = false;
  ComputeType<T> value{};
  int64_t at = 0;
  int64_t next = 0;
  void Add(const Run<T>& run) {
    for (int64_t i = 0; i < run.count; ++i, ++next) {
      const ComputeType<T> item = run[i];
      const bool is_better =
          !has_value ||
          (!IsNan(value) &&
           (IsNan(item) || (kIsMax ? Less(value, item) : Less(item, value))));
      if (!is_better) continue;
      has_value = true;
      value = item;
      at = next;
    }
  }
  Out Result(int64_t) const { return at; }
};
template <typename T>
using ArgMin = ArgExtreme<T, false>;
template <typename T>
using ArgMax = ArgExtreme<T, true>;

template <typename T, bool kIsAll>
struct Quantified {
  using Out = bool;
  bool value = kIsAll;
  void Add(const Run<T>& run) {
    for (int64_t i = 0; i < run.count && value == kIsAll; ++i) {
      if ((run[i] != ComputeType<T>{}) != kIsAll) value = !kIsAll;
    }
  }
  Out Result(int64_t) const { return value; }
};
template <typename T>
using Any = Quantified<T, false>;
template <typename T>
using All = Quantified<T, true>;

// Where the items of a row are: those that end up in different items of the
// result, and those that end up in the same.
struct Axes {
  Walk kept;
  Walk reduced;
  int64_t num_reduced = 1;

  Axes(absl::Span<const int64_t> shape, uint64_t mask, size_t item_size) {
    kept.operands = reduced.operands = 1;
    const Shape strides = ContiguousStrides(shape, item_size);
    for (size_t i = 0; i < shape.size(); ++i) {
      if ((mask >> i) & 1) {
        reduced.Add(shape[i], &strides[i]);
        num_reduced *= shape[i];
      } else {
        kept.Add(shape[i], &strides[i]);
      }
    }
  }
};

// Calls visit(base, stride, count) for the runs of a walk, in order.
template <typename Visit>
void ForEachRun(const Walk& walk, const std::byte* base, Visit&& visit) {
  if (walk.rank == 0) {
    visit(base, int64_t{0}, int64_t{1});
    return;
  }
  const int inner = walk.rank - 1;
  for (int d = 0; d < walk.rank; ++d) {
    if (walk.dims[d] == 0) return;
  }
  int64_t index[kMaxRank + 1] = {};
  while (true) {
    visit(base, walk.strides[0][inner], walk.dims[inner]);
    int d = inner - 1;
    for (; d >= 0; --d) {
      base += walk.strides[0][d];
      if (++index[d] < walk.dims[d]) break;
      base -= walk.dims[d] * walk.strides[0][d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

using Kernel = void (*)(const Axes& axes, const std::byte* in, std::byte* out);

template <template <typename> typename Op, typename T>
void Reduce(const Axes& axes, const std::byte* in, std::byte* out) {
  auto* to = reinterpret_cast<typename Op<T>::Out*>(out);
  ForEachRun(axes.kept, in,
             [&](const std::byte* base, int64_t stride, int64_t count) {
               for (int64_t i = 0; i < count; ++i, base += stride) {
                 Op<T> op;
                 ForEachRun(axes.reduced, base,
                            [&](const std::byte* at, int64_t step, int64_t n) {
                              op.Add(Run<T>{at, step, n});
                            });
                 *to++ = op.Result(axes.num_reduced);
               }
             });
}

template <template <typename> typename Op>
Kernel KernelFor(DType dtype) {
  return VisitDType(dtype, [](auto item) -> Kernel {
    using T = decltype(item);
    if constexpr (Number<ComputeType<T>>) {
      return &Reduce<Op, T>;
    } else {
      return nullptr;
    }
  });
}

template <template <typename> typename Op>
DType OutDType(DType dtype) {
  return VisitDType(dtype, [](auto item) -> DType {
    using T = decltype(item);
    if constexpr (Number<ComputeType<T>>) {
      return kDTypeOf<typename Op<T>::Out>;
    } else {
      return kDTypeOf<T>;
    }
  });
}

struct Axis {
  uint64_t mask = 0;
  bool keepdims = false;
};

absl::StatusOr<Axis> AxisOf(const Attrs& attrs, int rank) {
  Axis axis;
  PENSTOCK_ASSIGN_OR_RETURN(axis.keepdims, BoolAttr(attrs, "keepdims", false));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Ints> axes,
                            AxisAttr(attrs, "axis"));
  if (rank > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value may have ", kMaxRank, " dimensions; got ", rank));
  }
  if (!axes.has_value()) {
    axis.mask = (uint64_t{1} << rank) - 1;
    return axis;
  }
  for (int64_t each : *axes) {
    PENSTOCK_ASSIGN_OR_RETURN(const int at, NormalAxis(each, rank));
    if ((axis.mask >> at) & 1) {
      return absl::InvalidArgumentError("duplicate value in 'axis'");
    }
    axis.mask |= uint64_t{1} << at;
  }
  return axis;
}

// Whether a function has no value over no items, and what numpy then says.
struct Emptiness {
  std::string_view name;
  bool needs_items;
  bool takes_one_axis;

  absl::Status Error() const {
    return absl::InvalidArgumentError(
        takes_one_axis ? absl::StrCat("attempt to get ", Text(name),
                                      " of an empty sequence")
                       : absl::StrCat("zero-size array to reduction operation ",
                                      Text(name), " which has no identity"));
  }
};

template <const Emptiness& kEmpty, template <typename> typename Op>
absl::StatusOr<TensorSpec> InferReduce(absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  TensorSpec result = args[0].spec;
  PENSTOCK_RETURN_IF_ERROR(
      ComputeDTypeOrError(kEmpty.name, Rule::kNumber, result.dtype).status());
  result.dtype = OutDType<Op>(result.dtype);
  const PartialShape& shape = args[0].spec.shape;
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Ints> axes,
                            AxisAttr(attrs, "axis"));
  if (kEmpty.takes_one_axis && axes.has_value() && axes->size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(Text(kEmpty.name), "'s axis must be None or an int; got ",
                     axes->size(), " of them"));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const bool keepdims,
                            BoolAttr(attrs, "keepdims", false));
  if (!shape.has_rank()) {
    if (!axes.has_value() && !keepdims) result.shape = PartialShape();
    return result;
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Axis axis, AxisOf(attrs, shape.rank()));
  PartialShape::Dims dims;
  bool is_empty = false;
  bool has_items = true;
  for (int i = 0; i < shape.rank(); ++i) {
    if (((axis.mask >> i) & 1) == 0) {
      dims.push_back(shape.dims()[i]);
      has_items = has_items && shape.dims()[i].value_or(0) > 0;
    } else {
      is_empty = is_empty || shape.dims()[i] == 0;
      if (axis.keepdims) dims.push_back(1);
    }
  }
  if (kEmpty.needs_items && is_empty && has_items) return kEmpty.Error();
  result.shape = PartialShape(std::move(dims));
  return result;
}

template <const Emptiness& kEmpty, template <typename> typename Op>
absl::StatusOr<Column> EvalReduce(absl::Span<const Arg> args,
                                  const Attrs& attrs, const TensorSpec& result,
                                  EvalContext& context) {
  const Column& x = *args[0].column;
  PENSTOCK_ASSIGN_OR_RETURN(const Axis axis, AxisOf(attrs, x.rank()));
  const Kernel kernel = KernelFor<Op>(x.dtype());
  const size_t item_size = ItemSize(x.dtype());
  const int rank =
      axis.keepdims ? x.rank() : x.rank() - std::popcount(axis.mask);
  std::optional<Axes> axes;
  if (x.is_dense()) axes.emplace(x.shape(), axis.mask, item_size);
  return MakeRows(
      result.dtype, rank, x.rows(), x.is_dense(), {}, context,
      [&](int64_t row, int64_t* dims) {
        const absl::Span<const int64_t> shape = x.RowShape(row);
        int64_t reduced = 1;
        int64_t kept = 1;
        for (int i = 0; i < x.rank(); ++i) {
          if (((axis.mask >> i) & 1) == 0) {
            *dims++ = shape[i];
            kept *= shape[i];
          } else {
            reduced *= shape[i];
            if (axis.keepdims) *dims++ = 1;
          }
        }
        if (kEmpty.needs_items && reduced == 0 && kept > 0) {
          return kEmpty.Error();
        }
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t>, std::byte* out) {
        if (axes.has_value()) {
          kernel(*axes, x.RowData(row), out);
        } else {
          kernel(Axes(x.RowShape(row), axis.mask, item_size), x.RowData(row),
                 out);
        }
      });
}

constexpr Emptiness kSum = {"sum", false, false};
constexpr Emptiness kProd = {"prod", false, false};
constexpr Emptiness kMean = {"mean", false, false};
constexpr Emptiness kMin = {"minimum", true, false};
constexpr Emptiness kMax = {"maximum", true, false};
constexpr Emptiness kAny = {"any", false, false};
constexpr Emptiness kAll = {"all", false, false};
constexpr Emptiness kArgMin = {"argmin", true, true};
constexpr Emptiness kArgMax = {"argmax", true, true};

template <const Emptiness& kEmpty, template <typename> typename Op>
Function Reduction(std::string_view name, std::string_view doc,
                   std::string_view example) {
  return {.name = name,
          .params = {{"x", ParamKind::kTensor, "", "The values."},
                     {"axis", ParamKind::kAxis, "None",
                      kEmpty.takes_one_axis
                          ? "Which axis; None means all, counted as one."
                          : "Which axes; None means all."},
                     {"keepdims", ParamKind::kBool, "False",
                      "Leaves the axes in the result, with size 1."}},
          .doc = doc,
          .example = example,
          .infer = InferReduce<kEmpty, Op>,
          .eval = EvalReduce<kEmpty, Op>};
}

}  // namespace

std::vector<Function> ReduceFunctions() {
  return {
      Reduction<kSum, Sum>(
          "sum", "The sum; of integers as int64 or uint64, wrapping around.",
          ">>> ps.sum(np.array([[1, 2], [3, 4]]), axis=0)\narray([4, 6])"),
      Reduction<kProd, Product>(
          "prod",
          "The product; of integers as int64 or uint64, wrapping around.",
          ">>> ps.prod(np.array([[1, 2], [3, 4]]), axis=0)\narray([3, 8])"),
      Reduction<kMean, Mean>(
          "mean", "The mean; of integers as float64. NaN of nothing.",
          ">>> ps.mean(np.array([[1, 2], [3, 4]]), axis=1)\n"
          "array([1.5, 3.5])"),
      Reduction<kMin, Min>(
          "min", "The least value; NaN if any is. Of nothing it is an error.",
          ">>> ps.min(np.array([[1, 2], [3, 4]]), axis=0)\narray([1, 2])"),
      Reduction<kMax, Max>(
          "max",
          "The greatest value; NaN if any is. Of nothing it is an error.",
          ">>> ps.max(np.array([[1, 2], [3, 4]]), axis=0)\narray([3, 4])"),
      Reduction<kAny, Any>("any", "Whether any value is nonzero.",
                           ">>> ps.any(np.array([[0, 1], [0, 0]]), axis=1)\n"
                           "array([ True, False])"),
      Reduction<kAll, All>("all", "Whether all values are nonzero.",
                           ">>> ps.all(np.array([[1, 1], [0, 1]]), axis=1)\n"
                           "array([ True, False])"),
      Reduction<kArgMin, ArgMin>(
          "argmin", "Where the least value is: the first, or the first NaN.",
          ">>> ps.argmin(np.array([[3, 1], [3, 4]]), axis=1)\narray([1, 0])"),
      Reduction<kArgMax, ArgMax>(
          "argmax", "Where the greatest value is: the first, or the first NaN.",
          ">>> ps.argmax(np.array([[3, 1], [3, 4]]), axis=1)\narray([0, 1])"),
  };
}

}  // namespace penstock::functions
