#include "penstock/functions/elementwise.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/cast.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

// An argument in the dtype that is computed in. A single item needs no memory
// of its own.
struct Operand {
  const Column* column = nullptr;
  bool is_uniform = false;
  const std::byte* single = nullptr;  // the one item of a uniform argument
  Column cast;
  alignas(16) std::byte cast_item[16];

  const std::byte* RowData(int64_t row) const {
    return single != nullptr ? single : column->RowData(is_uniform ? 0 : row);
  }
  absl::Span<const int64_t> RowShape(int64_t row) const {
    return column->RowShape(is_uniform ? 0 : row);
  }
};

void Prepare(const Arg& arg, DType dtype, Operand& operand) {
  operand.column = arg.column;
  operand.is_uniform = arg.is_uniform;
  if (arg.is_uniform && arg.column->RowItems(0) == 1) {
    operand.single = arg.column->RowData(0);
    if (arg.column->dtype() != dtype) {
      CastItems(arg.column->dtype(), operand.single, dtype, operand.cast_item,
                1);
      operand.single = operand.cast_item;
    }
    return;
  }
  if (arg.column->dtype() != dtype) {
    operand.cast = Cast(*arg.column, dtype);
    operand.column = &operand.cast;
  }
}

struct Operands {
  Operand items[Walk::kMaxOperands];
  size_t item_sizes[Walk::kMaxOperands];
  int count = 0;
  int rank = 0;  // of the result
  bool is_dense = true;
};

// All operands dense. False if their shapes do not fit.
bool RunDense(const Operands& operands, DType result, int64_t rows, Loop loop,
              Pins pins, const EvalContext& context, Column& out) {
  Shape shape(operands.rank, 1);
  for (int k = 0; k < operands.count; ++k) {
    if (!BroadcastInto(absl::MakeSpan(shape),
                       operands.items[k].column->shape())) {
      return false;
    }
  }
  Walk walk;
  walk.operands = operands.count;
  const std::byte* in[Walk::kMaxOperands];
  int64_t strides[kMaxRank + 1][Walk::kMaxOperands];
  for (int k = 0; k < operands.count; ++k) {
    const Operand& operand = operands.items[k];
    in[k] = operand.RowData(0);
    const Shape& own = operand.column->shape();
    int64_t stride = static_cast<int64_t>(operands.item_sizes[k]);
    const int skip = operands.rank - static_cast<int>(own.size());
    for (int i = operands.rank - 1; i >= 0; --i) {
      const int64_t dim = i < skip ? 1 : own[i - skip];
      strides[i + 1][k] = dim == 1 ? 0 : stride;
      stride *= dim;
    }
    strides[0][k] = operand.is_uniform ? 0 : stride;
  }
  walk.Add(rows, strides[0]);
  for (int i = 0; i < operands.rank; ++i) walk.Add(shape[i], strides[i + 1]);
  const size_t item_size = ItemSize(result);
  Buffer values = context.AllocateResult(rows * NumItems(shape) * item_size);
  RunWalk(walk, in, values.MutableAs<std::byte>(), item_size, loop);
  out = Column::Dense(result, std::move(shape), rows, std::move(values),
                      std::move(pins));
  return true;
}

void RunRow(const Operands& operands, int64_t row,
            absl::Span<const int64_t> shape, size_t item_size, Loop loop,
            std::byte* out) {
  Walk walk;
  walk.operands = operands.count;
  const std::byte* in[Walk::kMaxOperands];
  int64_t flat_strides[Walk::kMaxOperands];
  bool is_flat = true;
  const int64_t items = NumItems(shape);
  for (int k = 0; k < operands.count; ++k) {
    in[k] = operands.items[k].RowData(row);
    const int64_t own = NumItems(operands.items[k].RowShape(row));
    flat_strides[k] = own == 1 ? 0 : operands.item_sizes[k];
    is_flat = is_flat && (own == 1 || own == items);
  }
  if (items == 0) return;
  if (is_flat) {
    loop(in, flat_strides, out, items);
    return;
  }
  int64_t strides[kMaxRank][Walk::kMaxOperands];
  for (int k = 0; k < operands.count; ++k) {
    absl::Span<const int64_t> own = operands.items[k].RowShape(row);
    int64_t stride = static_cast<int64_t>(operands.item_sizes[k]);
    const int skip = operands.rank - static_cast<int>(own.size());
    for (int i = operands.rank - 1; i >= 0; --i) {
      const int64_t dim = i < skip ? 1 : own[i - skip];
      strides[i][k] = dim == 1 ? 0 : stride;
      stride *= dim;
    }
  }
  for (int i = 0; i < operands.rank; ++i) walk.Add(shape[i], strides[i]);
  RunWalk(walk, in, out, item_size, loop);
}

}  // namespace

absl::StatusOr<Column> RunElementwise(absl::Span<const Arg> args,
                                      const DType* compute, DType result,
                                      Loop loop, EvalContext& context) {
  const int64_t rows = ResultRows(args, context);
  Operands operands;
  operands.count = static_cast<int>(args.size());
  for (int k = 0; k < operands.count; ++k) {
    Prepare(args[k], compute[k], operands.items[k]);
    operands.item_sizes[k] = ItemSize(compute[k]);
    operands.rank = std::max(operands.rank, args[k].column->rank());
    operands.is_dense = operands.is_dense && args[k].column->is_dense();
  }
  if (operands.rank > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a value may have ", kMaxRank, " dimensions; got ", operands.rank));
  }
  Pins pins = result == DType::kString ? StringPins(args) : Pins{};
  Column out;
  if (operands.is_dense &&
      RunDense(operands, result, rows, loop, pins, context, out)) {
    return out;
  }
  const size_t item_size = ItemSize(result);
  return MakeRows(
      result, operands.rank, rows, /*has_one_shape=*/false, std::move(pins),
      context,
      [&](int64_t row, int64_t* dims) {
        absl::Span<int64_t> shape(dims, operands.rank);
        std::fill(shape.begin(), shape.end(), 1);
        for (int k = 0; k < operands.count; ++k) {
          if (!BroadcastInto(shape, operands.items[k].RowShape(row))) {
            absl::Span<const int64_t> shapes[Walk::kMaxOperands];
            for (int j = 0; j < operands.count; ++j) {
              shapes[j] = operands.items[j].RowShape(row);
            }
            return BroadcastError(absl::MakeConstSpan(shapes, operands.count));
          }
        }
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* to) {
        RunRow(operands, row, shape, item_size, loop, to);
      });
}

absl::StatusOr<TensorSpec> InferPromoted(std::string_view name, Rule rule,
                                         absl::Span<const ArgSpec> args) {
  PENSTOCK_ASSIGN_OR_RETURN(const DType promoted, PromoteOrError(name, args));
  TensorSpec result;
  PENSTOCK_ASSIGN_OR_RETURN(result.dtype,
                            ComputeDTypeOrError(name, rule, promoted));
  for (const ArgSpec& arg : args) {
    PENSTOCK_RETURN_IF_ERROR(CheckFits(arg, result.dtype));
  }
  PENSTOCK_ASSIGN_OR_RETURN(result.shape, BroadcastShape(args));
  return result;
}

}  // namespace penstock::functions
