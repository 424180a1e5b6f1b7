#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/cast.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

// The words of one row. Word i is that of SplitMix64 at distance i from a start
// that depends on (random key, seed, lineage of the row): nothing is kept from
// one to the next, so neither chunks nor threads can be seen in them.
class Words final {
 public:
  Words(uint64_t key, uint64_t lineage) : start_(Combine(key, lineage)) {}
  uint64_t operator[](uint64_t i) const {
    return Mix(start_ + i * 0x9e3779b97f4a7c15ULL);
  }

 private:
  uint64_t start_;
};

// In [0, 1), as many bits as a double holds.
double Fraction(uint64_t word) {
  return static_cast<double>(word >> 11) * 0x1p-53;
}

template <typename T>
T Rounded(double value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return static_cast<T>(static_cast<float>(value));
  }
}

template <typename T>
double AsDouble(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return static_cast<float>(value);
  }
}

absl::StatusOr<TensorSpec> InferRandom(std::string_view name, bool is_integer,
                                       absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  TensorSpec result;
  PENSTOCK_ASSIGN_OR_RETURN(
      result.dtype,
      DTypeAttr(attrs, "dtype", is_integer ? DType::kInt64 : DType::kFloat32));
  PENSTOCK_RETURN_IF_ERROR(IntAttr(attrs, "seed", 0).status());
  if (is_integer ? !IsInteger(result.dtype) : !IsFloat(result.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Text(name), "'s dtype must be ", is_integer ? "an integer" : "a float",
        "; got ", Text(Name(result.dtype))));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckInts("shape", args[0], 1));
  for (const ArgSpec& arg : args.subspan(1)) {
    if (!(IsInteger(arg.spec.dtype) ||
          (!is_integer && IsFloat(arg.spec.dtype))) ||
        (arg.spec.shape.has_rank() && arg.spec.shape.rank() != 0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          Text(name), " needs scalar bounds; got ", arg.spec.ToString()));
    }
  }
  if (const std::optional<Ints> dims = ConstantInts(args[0])) {
    PENSTOCK_RETURN_IF_ERROR(CheckElementSize(*dims, result.dtype));
    result.shape = PartialShape(absl::Span<const int64_t>(*dims));
  } else if (const std::optional<int64_t> rank = KnownCount(args[0])) {
    result.shape = PartialShape(PartialShape::Dims(*rank));
  } else {
    result.shape = PartialShape::UnknownRank();
  }
  return result;
}

// Rows of the shapes in args[0]. check(row) -> absl::Status says whether a row
// can be drawn; draw(row, words, i) -> T gives item i.
template <typename T, typename Check, typename Draw>
absl::StatusOr<Column> DrawRows(absl::Span<const Arg> args, const Attrs& attrs,
                                const TensorSpec& result, EvalContext& context,
                                Check&& check, Draw&& draw) {
  if (context.lineage == nullptr) {
    return absl::InternalError("random functions need the rows' lineage");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t seed, IntAttr(attrs, "seed", 0));
  PENSTOCK_ASSIGN_OR_RETURN(const int rank,
                            RankFrom(args[0], context.rows, result.shape));
  const uint64_t key = Combine(context.random_key, static_cast<uint64_t>(seed));
  bool has_one_shape = true;
  for (const Arg& arg : args) has_one_shape = has_one_shape && arg.is_uniform;
  return MakeRows(
      result.dtype, rank, context.rows, has_one_shape, {}, context,
      [&](int64_t row, int64_t* dims) {
        absl::Status status = ReadDims(args[0], row, rank, dims);
        return status.ok() ? check(row) : status;
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        const Words words(key, context.lineage[row]);
        T* to = reinterpret_cast<T*>(out);
        const int64_t count = NumItems(shape);
        for (int64_t i = 0; i < count; ++i) to[i] = draw(row, words, i);
      });
}

absl::Status Always(int64_t) { return absl::OkStatus(); }

template <typename F>
absl::StatusOr<Column> VisitFloat(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat16:
      return f(Half{}, 11);
    case DType::kBfloat16:
      return f(Bfloat16{}, 8);
    case DType::kFloat32:
      return f(float{}, 24);
    case DType::kFloat64:
      return f(double{}, 53);
    default:
      return absl::InternalError("no float dtype");
  }
}

// The value that a scalar argument has in a row, as a double.
class Scalars final {
 public:
  explicit Scalars(const Arg& arg)
      : column_(Cast(*arg.column, DType::kFloat64)),
        is_uniform_(arg.is_uniform) {}
  double operator[](int64_t row) const {
    return *column_.Row<double>(is_uniform_ ? 0 : row);
  }

 private:
  Column column_;
  bool is_uniform_;
};

absl::StatusOr<TensorSpec> InferUniform(absl::Span<const ArgSpec> args,
                                        const Attrs& attrs) {
  return InferRandom("random_uniform", false, args, attrs);
}

absl::StatusOr<Column> EvalUniform(absl::Span<const Arg> args,
                                   const Attrs& attrs, const TensorSpec& result,
                                   EvalContext& context) {
  const Scalars low(args[1]);
  const Scalars high(args[2]);
  return VisitFloat(result.dtype, [&](auto item, int bits) {
    using T = decltype(item);
    const double scale = std::ldexp(1.0, -bits);
    return DrawRows<T>(args, attrs, result, context, Always,
                       [&](int64_t row, const Words& words, int64_t i) {
                         const double fraction =
                             static_cast<double>(words[i] >> (64 - bits)) *
                             scale;
                         const double span = high[row] - low[row];
                         T value = Rounded<T>(low[row] + fraction * span);
                         // Rounding may reach the end, which is not in the
                         // range.
                         if (span > 0 && AsDouble(value) >= high[row]) {
                           value = Rounded<T>(low[row]);
                         }
                         return value;
                       });
  });
}

absl::StatusOr<TensorSpec> InferNormal(absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  return InferRandom("random_normal", false, args, attrs);
}

// Box and Muller's method, two words for each item.
absl::StatusOr<Column> EvalNormal(absl::Span<const Arg> args,
                                  const Attrs& attrs, const TensorSpec& result,
                                  EvalContext& context) {
  const Scalars mean(args[1]);
  const Scalars stddev(args[2]);
  return VisitFloat(result.dtype, [&](auto item, int) {
    using T = decltype(item);
    return DrawRows<T>(
        args, attrs, result, context, Always,
        [&](int64_t row, const Words& words, int64_t i) {
          const double radius =
              std::sqrt(-2 * std::log(1 - Fraction(words[2 * i])));
          const double angle = 2 * M_PI * Fraction(words[2 * i + 1]);
          return Rounded<T>(mean[row] + stddev[row] * radius * std::cos(angle));
        });
  });
}

absl::StatusOr<TensorSpec> InferInteger(absl::Span<const ArgSpec> args,
                                        const Attrs& attrs) {
  return InferRandom("random_int", true, args, attrs);
}

// Below `range`, each value as likely as any other: the upper half of a
// product, drawn again in the few cases that would favour some (Lemire).
uint64_t Below(uint64_t range, uint64_t word) {
  unsigned __int128 product = static_cast<unsigned __int128>(word) *
                              static_cast<unsigned __int128>(range);
  if (static_cast<uint64_t>(product) < range) {
    const uint64_t threshold = (0 - range) % range;
    while (static_cast<uint64_t>(product) < threshold) {
      word = Mix(word);
      product = static_cast<unsigned __int128>(word) * range;
    }
  }
  return static_cast<uint64_t>(product >> 64);
}

absl::StatusOr<Column> EvalInteger(absl::Span<const Arg> args,
                                   const Attrs& attrs, const TensorSpec& result,
                                   EvalContext& context) {
  const Column low = Cast(*args[1].column, DType::kInt64);
  const Column high = Cast(*args[2].column, DType::kInt64);
  auto low_of = [&](int64_t row) {
    return *low.Row<int64_t>(RowIndex(args[1], row));
  };
  auto high_of = [&](int64_t row) {
    return *high.Row<int64_t>(RowIndex(args[2], row));
  };
  return VisitDType(result.dtype, [&](auto item) -> absl::StatusOr<Column> {
    using T = decltype(item);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      return DrawRows<T>(
          args, attrs, result, context,
          [&](int64_t row) {
            if (low_of(row) < high_of(row) && std::in_range<T>(low_of(row)) &&
                std::in_range<T>(high_of(row) - 1)) {
              return absl::OkStatus();
            }
            return absl::InvalidArgumentError(
                absl::StrCat("random_int needs minval < maxval within ",
                             Text(Name(result.dtype)), "; got ", low_of(row),
                             " and ", high_of(row)));
          },
          [&](int64_t row, const Words& words, int64_t i) {
            const auto base = static_cast<uint64_t>(low_of(row));
            const uint64_t range = static_cast<uint64_t>(high_of(row)) - base;
            return static_cast<T>(base + Below(range, words[i]));
          });
    } else {
      return absl::InternalError("no integer dtype");
    }
  });
}

}  // namespace

std::vector<Function> RandomFunctions() {
  const Param shape = {"shape", ParamKind::kTensor, "()", "The dimensions."};
  const Param& seed = kSeedParam;
  const Param dtype = {"dtype", ParamKind::kDType, "float32",
                       "That of the result."};
  return {
      {.name = "random_uniform",
       .params = {shape,
                  {"minval", ParamKind::kTensor, "0.0", "The least value."},
                  {"maxval", ParamKind::kTensor, "1.0",
                   "The end, which is never reached."},
                  dtype,
                  seed},
       .doc = "Floats from [minval, maxval), each as likely as any other.",
       .example = ">>> ps.random_uniform((2, 3)).shape\n(2, 3)",
       .is_random = true,
       .infer = InferUniform,
       .eval = EvalUniform},
      {.name = "random_normal",
       .params = {shape,
                  {"mean", ParamKind::kTensor, "0.0", "The mean."},
                  {"stddev", ParamKind::kTensor, "1.0",
                   "The standard deviation."},
                  dtype,
                  seed},
       .doc = "Floats from a normal distribution.",
       .example = ">>> ps.random_normal((2, 3)).shape\n(2, 3)",
       .is_random = true,
       .infer = InferNormal,
       .eval = EvalNormal},
      {.name = "random_int",
       .params = {{"shape", ParamKind::kTensor, "", "The dimensions."},
                  {"minval", ParamKind::kTensor, "", "The least value."},
                  {"maxval", ParamKind::kTensor, "",
                   "The end, which is never reached."},
                  {"dtype", ParamKind::kDType, "int64", "That of the result."},
                  seed},
       .doc = "Integers from [minval, maxval), each as likely as any other.",
       .example = ">>> ps.random_int((2, 3), 0, 10).shape\n(2, 3)",
       .is_random = true,
       .infer = InferInteger,
       .eval = EvalInteger},
  };
}

}  // namespace penstock::functions
