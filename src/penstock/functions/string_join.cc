#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/elementwise.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/string_concat.h"
#include "penstock/functions/string_items.h"

namespace penstock::functions {
namespace {

// Copies items of operand kWhich to the places of the broadcast.
template <int kWhich>
void TakeLoop(const std::byte* const* in, const int64_t* strides,
              std::byte* out, int64_t count) {
  auto* to = reinterpret_cast<StringRef*>(out);
  const std::byte* at = in[kWhich];
  for (int64_t i = 0; i < count; ++i, at += strides[kWhich]) {
    to[i] = *reinterpret_cast<const StringRef*>(at);
  }
}

bool AreDenseOfOneShape(absl::Span<const Arg> args) {
  return std::all_of(args.begin(), args.end(), [&](const Arg& arg) {
    return arg.column->is_dense() &&
           arg.column->shape() == args[0].column->shape();
  });
}

StringRef Concat(StringRef a, StringRef b, ByteBlocks& blocks) {
  char* out = blocks.Allocate(a.size + b.size);
  std::memcpy(out, a.data, a.size);
  std::memcpy(out + a.size, b.data, b.size);
  return {out, a.size + b.size};
}

// Bytes of `count` strings and what stands between them.
uint64_t JoinedSize(absl::Span<const StringRef> items, size_t separator) {
  uint64_t size = items.empty() ? 0 : (items.size() - 1) * separator;
  for (const StringRef& item : items) size += item.size;
  return size;
}

absl::Status TooLong(uint64_t size) {
  return absl::InvalidArgumentError(absl::StrCat(
      "a joined string may take ", kMaxElementBytes, " bytes; got ", size));
}

StringRef Joined(absl::Span<const StringRef> items, std::string_view separator,
                 uint64_t size, ByteBlocks& blocks) {
  char* const begin = blocks.Allocate(size);
  char* out = begin;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0 && !separator.empty()) {
      std::memcpy(out, separator.data(), separator.size());
      out += separator.size();
    }
    if (items[i].size > 0) std::memcpy(out, items[i].data, items[i].size);
    out += items[i].size;
  }
  return {begin, size};
}

absl::StatusOr<TensorSpec> InferJoin(absl::Span<const ArgSpec> args,
                                     const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(TextAttrOr(attrs, "separator", "").status());
  TensorSpec result{DType::kString, {}};
  for (const ArgSpec& arg : args) {
    PENSTOCK_RETURN_IF_ERROR(CheckStrings("strings.join", arg));
    if (!arg.spec.shape.has_rank()) {
      result.shape = PartialShape::UnknownRank();
    }
  }
  if (!result.shape.has_rank()) return result;
  PENSTOCK_ASSIGN_OR_RETURN(result.shape, BroadcastShape(args));
  for (const ArgSpec& arg : args) {
    const int rank = arg.spec.shape.rank();
    if (rank != 0 && rank != result.shape.rank()) {
      return absl::InvalidArgumentError(
          absl::StrCat("strings.join needs values of one shape, and scalars; "
                       "got ranks ",
                       rank, " and ", result.shape.rank()));
    }
  }
  return result;
}

absl::StatusOr<Column> EvalJoin(absl::Span<const Arg> args, const Attrs& attrs,
                                const TensorSpec&, EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view separator,
                            TextAttrOr(attrs, "separator", ""));
  // The shape is that of the first which is no scalar.
  const Arg* model = &args[0];
  for (const Arg& arg : args) {
    if (model->column->rank() == 0 && arg.column->rank() > 0) model = &arg;
  }
  const auto blocks = ByteBlocks::Make();
  std::vector<StringRef> parts(args.size());
  return MakeRows(
      DType::kString, model->column->rank(), ResultRows(args, context),
      std::all_of(args.begin(), args.end(), HasOneShape), {blocks}, context,
      [&](int64_t row, int64_t* dims) {
        const auto shape = model->column->RowShape(RowIndex(*model, row));
        for (const Arg& arg : args) {
          const auto own = arg.column->RowShape(RowIndex(arg, row));
          if (arg.column->rank() > 0 && own != shape) {
            return absl::InvalidArgumentError(absl::StrCat(
                "strings.join needs values of one shape, and scalars; got ",
                ToString(shape), " and ", ToString(own)));
          }
        }
        std::copy(shape.begin(), shape.end(), dims);
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        auto* to = reinterpret_cast<StringRef*>(out);
        const int64_t count = NumItems(shape);
        for (int64_t i = 0; i < count; ++i) {
          for (size_t k = 0; k < args.size(); ++k) {
            const StringRef* from =
                args[k].column->Row<StringRef>(RowIndex(args[k], row));
            parts[k] = from[args[k].column->rank() == 0 ? 0 : i];
          }
          const uint64_t size = JoinedSize(parts, separator.size());
          if (size > kMaxElementBytes) {
            ReportRow(context, row, TooLong(size));
            to[i] = {};
          } else {
            to[i] = Joined(parts, separator, size, *blocks);
          }
        }
      });
}

// With an axis: along it. Without: all items, as they lie.
absl::StatusOr<TensorSpec> InferReduceJoin(absl::Span<const ArgSpec> args,
                                           const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("strings.reduce_join", args[0]));
  PENSTOCK_RETURN_IF_ERROR(TextAttrOr(attrs, "separator", "").status());
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Ints> axis,
                            AxisAttr(attrs, "axis"));
  PENSTOCK_ASSIGN_OR_RETURN(const bool keeps_dims,
                            BoolAttr(attrs, "keepdims", false));
  if (axis && axis->size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("one reduce_join is along one axis; got ", axis->size()));
  }
  TensorSpec result = args[0].spec;
  if (!result.shape.has_rank()) {
    if (!axis && !keeps_dims) result.shape = PartialShape();
    return result;
  }
  PartialShape::Dims dims = result.shape.dims();
  if (!axis) {
    if (keeps_dims) {
      std::fill(dims.begin(), dims.end(), 1);
    } else {
      dims.clear();
    }
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(
        const int at, NormalAxis((*axis)[0], static_cast<int>(dims.size())));
    if (keeps_dims) {
      dims[at] = 1;
    } else {
      dims.erase(dims.begin() + at);
    }
  }
  result.shape = PartialShape(std::move(dims));
  return result;
}

absl::StatusOr<Column> EvalReduceJoin(absl::Span<const Arg> args,
                                      const Attrs& attrs, const TensorSpec&,
                                      EvalContext& context) {
  const Column& x = *args[0].column;
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view separator,
                            TextAttrOr(attrs, "separator", ""));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Ints> axis,
                            AxisAttr(attrs, "axis"));
  PENSTOCK_ASSIGN_OR_RETURN(const bool keeps_dims,
                            BoolAttr(attrs, "keepdims", false));
  int at = 0;
  if (axis) {
    PENSTOCK_ASSIGN_OR_RETURN(at, NormalAxis((*axis)[0], x.rank()));
  }
  const int dropped = keeps_dims ? 0 : axis ? 1 : x.rank();
  const auto blocks = ByteBlocks::Make();
  RowReporter reporter(context);
  std::vector<StringRef> parts;
  return MakeRows(
      DType::kString, x.rank() - dropped, ResultRows(args, context),
      HasOneShape(args[0]), {blocks}, context,
      [&](int64_t row, int64_t* dims) {
        const auto shape = x.RowShape(RowIndex(args[0], row));
        for (int i = 0; i < x.rank(); ++i) {
          const bool is_joined = !axis || i == at;
          if (is_joined && !keeps_dims) continue;
          *dims++ = is_joined ? 1 : shape[i];
        }
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t>, std::byte* out) {
        const int64_t own = RowIndex(args[0], row);
        const auto shape = x.RowShape(own);
        const StringRef* from = x.Row<StringRef>(own);
        auto* to = reinterpret_cast<StringRef*>(out);
        const int64_t count = axis ? shape[at] : x.RowItems(own);
        const int64_t inner = axis ? NumItems(shape.subspan(at + 1)) : 1;
        const int64_t outer = axis ? NumItems(shape.subspan(0, at)) : 1;
        parts.resize(count);
        for (int64_t o = 0; o < outer; ++o) {
          for (int64_t i = 0; i < inner; ++i) {
            for (int64_t k = 0; k < count; ++k) {
              parts[k] = from[(o * count + k) * inner + i];
            }
            const uint64_t size = JoinedSize(parts, separator.size());
            if (size > kMaxElementBytes) {
              reporter.Report(row, [&] { return TooLong(size); });
              *to++ = {};
            } else {
              *to++ = Joined(parts, separator, size, *blocks);
            }
          }
        }
      });
}

}  // namespace

absl::StatusOr<Column> ConcatStrings(absl::Span<const Arg> args,
                                     EvalContext& context) {
  Column spread[2];
  Arg own[] = {args[0], args[1]};
  const bool is_simple = AreDenseOfOneShape(args);
  if (!is_simple) {
    const DType strings[] = {DType::kString, DType::kString};
    for (int k = 0; k < 2; ++k) {
      // The second time, rows that do not fit are reported once more, which
      // the caller allows.
      PENSTOCK_ASSIGN_OR_RETURN(
          spread[k],
          RunElementwise(args, strings, DType::kString,
                         k == 0 ? TakeLoop<0> : TakeLoop<1>, context));
      own[k].column = &spread[k];
      own[k].is_uniform = false;
    }
  }
  const auto blocks = ByteBlocks::Make();
  const int64_t rows = ResultRows(args, context);
  return MakeRows(
      DType::kString, own[0].column->rank(), rows,
      std::all_of(own, own + 2, HasOneShape), {blocks}, context,
      [&](int64_t row, int64_t* dims) {
        const auto shape = own[0].column->RowShape(RowIndex(own[0], row));
        std::copy(shape.begin(), shape.end(), dims);
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        const auto* a = own[0].column->Row<StringRef>(RowIndex(own[0], row));
        const auto* b = own[1].column->Row<StringRef>(RowIndex(own[1], row));
        auto* to = reinterpret_cast<StringRef*>(out);
        const int64_t count = NumItems(shape);
        for (int64_t i = 0; i < count; ++i) to[i] = Concat(a[i], b[i], *blocks);
      });
}

std::vector<Function> StringJoinFunctions() {
  return {
      {.name = "strings.join",
       .params = {{"inputs", ParamKind::kTensors, "",
                   "Strings of one shape, and scalars."},
                  {"separator", ParamKind::kText, "\"\"",
                   "What comes between."}},
       .doc = "The strings at each place, one after another.",
       .example = ">>> ps.strings.join([[\"a\", \"b\"], \"x\"], \"-\")\n"
                  "array([b'a-x', b'b-x'], dtype=object)",
       .infer = InferJoin,
       .eval = EvalJoin},
      {.name = "strings.reduce_join",
       .params = {{"inputs", ParamKind::kTensor, "", "Strings."},
                  {"axis", ParamKind::kAxis, "None",
                   "Along which to join; None: all."},
                  {"keepdims", ParamKind::kBool, "False",
                   "Whether what is joined stays as a dimension of size 1."},
                  {"separator", ParamKind::kText, "\"\"",
                   "What comes between."}},
       .doc = "The strings along an axis as one.",
       .example = "",
       .infer = InferReduceJoin,
       .eval = EvalReduceJoin,
       .is_internal = true},
  };
}

}  // namespace penstock::functions
